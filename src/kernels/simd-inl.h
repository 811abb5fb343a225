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

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
