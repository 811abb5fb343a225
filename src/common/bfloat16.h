// bfloat16: the upper half of a float32, eight bits of precision with the range of float32. A number that is stored;
// sums are float32 everywhere.
#pragma once

#include <bit>
#include <cstdint>

namespace cgcn {

struct BFloat16 {
  uint16_t bits = 0;
};

inline float to_float(float value) { return value; }
inline float to_float(BFloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }
// To nearest, ties to even; what is no number stays none.
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

}  // namespace cgcn
