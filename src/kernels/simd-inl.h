// What the SIMD kernels share. Included once per instruction set, between foreach_target.h and the kernel's own code.
#if defined(CGCN_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CGCN_KERNELS_SIMD_INL_H_
#undef CGCN_KERNELS_SIMD_INL_H_
#else
#define CGCN_KERNELS_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/bfloat16.h"
#include "kernels/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::CappedTag<float, 64>;
using FloatVector = hn::Vec<FloatTag>;

// Bits c … c + lanes of a row of bits, as a mask. c is a multiple of the lanes.
HWY_INLINE hn::Mask<FloatTag> bits_at(FloatTag d, const uint8_t* bits, size_t c) {
  if (hn::Lanes(d) >= 8) return hn::LoadMaskBits(d, bits + c / 8);
  const uint8_t shifted[8] = {static_cast<uint8_t>(bits[c / 8] >> (c % 8))};
  return hn::LoadMaskBits(d, shifted);
}

// Calls whole(c) for every whole vector of [0, size) and tail(c, rest) for what is left.
template <class Whole, class Tail>
HWY_INLINE void for_vectors(size_t size, Whole&& whole, Tail&& tail) {
  const size_t lanes = hn::Lanes(FloatTag());
  size_t c = 0;
  for (; c + lanes <= size; c += lanes) whole(c);
  if (c < size) tail(c, size - c);
}

// The first `rest` lanes; the others are zero, and their memory is not touched (where masked memory operations of the
// instruction set would touch it, the lanes go through a small array).
HWY_INLINE FloatVector load_first(FloatTag d, const float* from, size_t rest) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[HWY_LANES(float)] = {};
  for (size_t i = 0; i < rest; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, rest), d, from);
#endif
}
HWY_INLINE void store_first(FloatVector v, FloatTag d, float* to, size_t rest) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[HWY_LANES(float)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < rest; ++i) to[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, rest), d, to);
#endif
}

// Values of either precision as float32 lanes: a whole vector, or the first `rest` lanes as above. bfloat16 is rounded
// as to_bfloat16() does it.
HWY_INLINE FloatVector load_values(FloatTag d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE FloatVector load_values(FloatTag d, const BFloat16* from) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  const hn::RebindToUnsigned<FloatTag> d32;
  const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(wide));
}
HWY_INLINE FloatVector load_values(FloatTag d, const float* from, size_t rest) { return load_first(d, from, rest); }
template <class T>
HWY_INLINE FloatVector load_values(FloatTag d, const T* from, size_t rest) {
  T lanes[HWY_LANES(float)] = {};
  for (size_t i = 0; i < rest; ++i) lanes[i] = from[i];
  return load_values(d, lanes);
}
HWY_INLINE void store_values(FloatVector v, FloatTag d, float* to) { hn::StoreU(v, d, to); }
// The bfloat16 is the upper half of each lane.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<FloatTag>> rounded_bits(FloatVector v) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFF)));
  return hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), hn::Or(bits, hn::Set(d32, 0x400000)), rounded);
}
HWY_INLINE void store_values(FloatVector v, FloatTag, BFloat16* to) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  const hn::RebindToSigned<FloatTag> signed32;
  const auto upper = hn::BitCast(signed32, hn::ShiftRight<16>(rounded_bits(v)));
  hn::StoreU(hn::DemoteTo(d16, upper), d16, reinterpret_cast<uint16_t*>(to));
}
HWY_INLINE void store_values(FloatVector v, FloatTag d, float* to, size_t rest) { store_first(v, d, to, rest); }
HWY_INLINE void store_values(FloatVector v, FloatTag d, BFloat16* to, size_t rest) {
  BFloat16 lanes[HWY_LANES(float)];
  store_values(v, d, lanes);
  for (size_t i = 0; i < rest; ++i) to[i] = lanes[i];
}

#if HWY_TARGET <= HWY_AVX3  // and better
// Pairs of bfloat16 columns: the even ones and the odd ones as float32 lanes, so that no lane changes its place.
using PairTag = hn::Repartition<uint16_t, FloatTag>;
using Pairs = hn::Vec<PairTag>;
struct PairSums {
  FloatVector even, odd;
};
HWY_INLINE PairSums split_pairs(Pairs pairs) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> words;
  const auto both = hn::BitCast(words, pairs);
  return {hn::BitCast(d, hn::ShiftLeft<16>(both)), hn::BitCast(d, hn::And(both, hn::Set(words, 0xFFFF0000u)))};
}
HWY_INLINE Pairs round_pairs(const PairSums& sums) {
  const hn::RebindToUnsigned<FloatTag> words;
  const auto upper = hn::And(rounded_bits(sums.odd), hn::Set(words, 0xFFFF0000u));
  return hn::BitCast(PairTag(), hn::Or(hn::ShiftRight<16>(rounded_bits(sums.even)), upper));
}
// Scaled and rounded; columns whose bit is not set become zero. c: the first column, a multiple of the lanes.
HWY_INLINE Pairs drop_pairs(const PairSums& sums, float scale, const uint8_t* bits, size_t c) {
  const FloatTag d;
  const FloatVector scales = hn::Set(d, scale);
  const Pairs scaled = round_pairs({hn::Mul(sums.even, scales), hn::Mul(sums.odd, scales)});
  return hn::IfThenElseZero(hn::LoadMaskBits(PairTag(), bits + c / 8), scaled);
}
#endif

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
