#include "kernels/random_words.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random_words.cc"
#include "hwy/foreach_target.h"
#include "kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

// Whole vectors of draws, which have four words each; returns how many draws that was.
size_t draw_vectors(const WordStream& stream, std::span<uint32_t> out) {
#if HWY_TARGET == HWY_SCALAR
  (void)stream, (void)out;
  return 0;
#else
  const WordTag d;
  const size_t lanes = hn::Lanes(d);
  const RoundKeys keys(philox_key(stream.seed, stream.purpose));
  const Words iota = hn::Iota(d, 0), a = hn::Set(d, uint64_t{stream.a}), b = hn::Set(d, uint64_t{stream.b}),
              c = hn::Set(d, uint64_t{stream.c});
  HWY_ALIGN uint64_t words[4][8];  // WordTag has eight lanes at most
  size_t draw = 0;
  for (; 4 * (draw + lanes) <= out.size(); draw += lanes) {
    Words c0 = hn::Add(iota, hn::Set(d, draw)), c1 = a, c2 = b, c3 = c;
    philox_lanes(keys, c0, c1, c2, c3);
    hn::Store(c0, d, words[0]);
    hn::Store(c1, d, words[1]);
    hn::Store(c2, d, words[2]);
    hn::Store(c3, d, words[3]);
    uint32_t* to = out.data() + 4 * draw;
    for (size_t lane = 0; lane < lanes; ++lane)
      for (size_t w = 0; w < 4; ++w) *to++ = static_cast<uint32_t>(words[w][lane]);
  }
  return draw;
#endif
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(draw_vectors);

void draw_words(const WordStream& stream, std::span<uint32_t> out) {
  size_t draw = HWY_DYNAMIC_DISPATCH(draw_vectors)(stream, out);
  for (; 4 * draw < out.size(); ++draw) {
    const PhiloxWords words =
        philox({static_cast<uint32_t>(draw), stream.a, stream.b, stream.c}, philox_key(stream.seed, stream.purpose));
    for (size_t w = 0; w < 4 && 4 * draw + w < out.size(); ++w) out[4 * draw + w] = words[w];
  }
}

}  // namespace cgcn::kernels
#endif
