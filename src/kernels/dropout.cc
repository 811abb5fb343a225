#include "kernels/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cc"
#include "common/random.h"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

// Philox on 64-bit lanes whose low halves hold the words: MulEven gives both halves of a product at once, and what the
// high halves hold besides never matters.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 multiply_words(D64 d, V64 words, uint32_t by) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, uint64_t{static_cast<uint32_t>(hn::GetLane(words))} * by);
#else
  const hn::Repartition<uint32_t, D64> d32;
  return hn::MulEven(hn::BitCast(d32, words), hn::BitCast(d32, hn::Set(d, uint64_t{by})));
#endif
}

template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE void philox_lanes(D64 d, PhiloxKey key, V64& c0, V64& c1, V64& c2, V64& c3) {
  for (int round = 0; round < 10; ++round) {
    const V64 p0 = multiply_words(d, c0, kPhiloxM0), p1 = multiply_words(d, c2, kPhiloxM1);
    c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, hn::Set(d, uint64_t{key[0]}));
    c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, hn::Set(d, uint64_t{key[1]}));
    c1 = p1;
    c3 = p0;
    key[0] += kPhiloxW0;
    key[1] += kPhiloxW1;
  }
}

// Eight groups from `group` on, one bit a group and 16-bit piece: 64 columns.
HWY_INLINE void draw_64(const DropoutKey& key, PhiloxKey seed, uint32_t threshold, size_t r, uint32_t group,
                        uint8_t* bits) {
  const hn::CappedTag<uint64_t, 8> d;
  using V64 = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V64 low16 = hn::Set(d, 0xFFFF), least = hn::Set(d, uint64_t{threshold});
  for (size_t lane = 0; lane < 8; lane += lanes) {
    V64 c0 = hn::Iota(d, group + lane + (uint64_t{key.stream} << 24)), c1 = hn::Set(d, r);
    V64 c2 = hn::Set(d, uint64_t{key.batch}), c3 = hn::Set(d, uint64_t{key.epoch});
    philox_lanes(d, seed, c0, c1, c2, c3);
    const V64 words[4] = {c0, c1, c2, c3};
    for (size_t word = 0; word < 4; ++word)
      for (size_t half = 0; half < 2; ++half) {
        const V64 number = hn::And(half == 0 ? words[word] : hn::ShiftRight<16>(words[word]), low16);
        uint8_t kept[8];
        hn::StoreMaskBits(d, hn::Not(hn::Lt(number, least)), kept);
        uint8_t& byte = bits[2 * word + half];
        byte = static_cast<uint8_t>(lane == 0 ? kept[0] : byte | kept[0] << lane);
      }
  }
}

void draw_rows(const DropoutKey& key, float rate, RowRange rows, size_t columns, const DropoutMask& mask) {
  const PhiloxKey seed = philox_key(key.seed, Purpose::kDropout);
  const uint32_t threshold = dropout_threshold(rate);
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t group = 0; group < DropoutMask::bytes_for(columns); group += 8)
      draw_64(key, seed, threshold, r, static_cast<uint32_t>(group), mask.row(r) + group);
}

HWY_INLINE FloatVector load_values(FloatTag d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE FloatVector load_values(FloatTag d, const uint16_t* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE FloatVector load_first_values(FloatTag d, const float* from, size_t rest) {
  return load_first(d, from, rest);
}
HWY_INLINE FloatVector load_first_values(FloatTag d, const uint16_t* from, size_t rest) {
  uint16_t padded[16] = {};
  for (size_t i = 0; i < rest; ++i) padded[i] = from[i];
  return load_values(d, padded);
}

template <class T>
HWY_INLINE void copy_row(const T* from, const uint8_t* bits, float scale, size_t width, float* to) {
  const FloatTag d;
  const FloatVector scales = hn::Set(d, scale);
  const auto drop = [&](FloatVector v, size_t c) HWY_ATTR {
    return bits == nullptr ? v : hn::IfThenElseZero(bits_at(d, bits, c), hn::Mul(v, scales));
  };
  for_vectors(
      width, [&](size_t c) HWY_ATTR { hn::StoreU(drop(load_values(d, from + c), c), d, to + c); },
      [&](size_t c, size_t rest)
          HWY_ATTR { store_first(drop(load_first_values(d, from + c, rest), c), d, to + c, rest); });
}

void apply_rows(const DropoutMask& mask, RowRange rows, ConstMatrix in, Matrix out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    copy_row(in.row(r), mask.empty() ? nullptr : mask.row(r), mask.scale, out.columns, out.row(r));
}

template <class T>
HWY_INLINE void gather(const T* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    copy_row(source + ids[r] * out.columns, mask.empty() ? nullptr : mask.row(r), mask.scale, out.columns, out.row(r));
}

void gather_float(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  gather(source, ids, rows, mask, out);
}
void gather_half(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  gather(source, ids, rows, mask, out);
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(draw_rows);
HWY_EXPORT(apply_rows);
HWY_EXPORT(gather_float);
HWY_EXPORT(gather_half);

void draw_dropout(const DropoutKey& key, float rate, RowRange rows, size_t columns, const DropoutMask& mask) {
  HWY_DYNAMIC_DISPATCH(draw_rows)(key, rate, rows, columns, mask);
}
void apply_dropout(const DropoutMask& mask, RowRange rows, ConstMatrix in, Matrix out) {
  HWY_DYNAMIC_DISPATCH(apply_rows)(mask, rows, in, out);
}
void gather_rows(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  HWY_DYNAMIC_DISPATCH(gather_float)(source, ids, rows, mask, out);
}
void gather_rows(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  HWY_DYNAMIC_DISPATCH(gather_half)(source, ids, rows, mask, out);
}

}  // namespace cgcn::kernels
#endif
