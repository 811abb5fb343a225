// Philox-4x32-10 (common/random.h) on vectors. Included once per instruction set.
#if defined(CGCN_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CGCN_KERNELS_PHILOX_INL_H_
#undef CGCN_KERNELS_PHILOX_INL_H_
#else
#define CGCN_KERNELS_PHILOX_INL_H_
#endif

#include "common/random.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using WordTag = hn::CappedTag<uint64_t, 8>;
using Words = hn::Vec<WordTag>;

struct RoundKeys {
  Words low[10], high[10];
  explicit HWY_INLINE RoundKeys(PhiloxKey key) {
    const WordTag d;
    for (int round = 0; round < 10; ++round) {
      low[round] = hn::Set(d, uint64_t{key[0]});
      high[round] = hn::Set(d, uint64_t{key[1]});
      key[0] += kPhiloxW0;
      key[1] += kPhiloxW1;
    }
  }
};

HWY_INLINE Words multiply_words(Words words, uint32_t by) {
  const hn::Repartition<uint32_t, WordTag> d32;
  return hn::MulEven(hn::BitCast(d32, words), hn::Set(d32, by));
}

// Philox on 64-bit lanes whose low halves hold the words: MulEven gives both halves of a product at once, and what the
// high halves hold never matters.
HWY_INLINE void philox_lanes(const RoundKeys& keys, Words& c0, Words& c1, Words& c2, Words& c3) {
  for (int round = 0; round < 10; ++round) {
    const Words p0 = multiply_words(c0, kPhiloxM0), p1 = multiply_words(c2, kPhiloxM1);
    c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, keys.low[round]);
    c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, keys.high[round]);
    c1 = p1;
    c3 = p0;
  }
}

#endif

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
