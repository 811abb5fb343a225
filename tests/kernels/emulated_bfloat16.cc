#include "kernels/emulated_bfloat16.h"

#include <array>
#include <bit>
#include <cstring>

#include "common/error.h"

// AVX-512 by SIMDe, which gives its functions the names of the instructions.
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

namespace cgcn::kernels {
namespace {

// What SIMDe 0.7.4 lacks: lanes without a bit in the mask are neither read nor written.
template <class Vector, class T>
Vector load_lanes(uint32_t mask, const T* from) {
  std::array<T, sizeof(Vector) / sizeof(T)> lanes{};
  for (size_t i = 0; i < lanes.size(); ++i)
    if (mask >> i & 1) lanes[i] = from[i];
  return std::bit_cast<Vector>(lanes);
}

template <class T, class Vector>
void store_lanes(T* to, uint32_t mask, Vector v) {
  const auto lanes = std::bit_cast<std::array<T, sizeof(Vector) / sizeof(T)>>(v);
  for (size_t i = 0; i < lanes.size(); ++i)
    if (mask >> i & 1) to[i] = lanes[i];
}

// Numbers too small for a normal float are kept, which the instruction flushes.
simde__m512i round_both(simde__m512 high, simde__m512 low) {
  const auto first = std::bit_cast<std::array<float, 16>>(low), second = std::bit_cast<std::array<float, 16>>(high);
  std::array<BFloat16, 32> rounded;
  for (size_t i = 0; i < 16; ++i) {
    rounded[i] = to_bfloat16(first[i]);
    rounded[16 + i] = to_bfloat16(second[i]);
  }
  return std::bit_cast<simde__m512i>(rounded);
}

// The tile unit of a thread, with its faults. Numbers too small for a normal float are kept, which the unit flushes.
class TileUnit {
 public:
  void configure(const void* config) {
    std::array<uint8_t, 64> bytes;
    std::memcpy(bytes.data(), config, bytes.size());
    CGCN_CHECK(bytes[0] == 1 && bytes[1] == 0, "palette {}, first row {}", bytes[0], bytes[1]);
    for (size_t i = 0; i < kTiles; ++i) {
      uint16_t row_bytes;
      std::memcpy(&row_bytes, &bytes[16 + 2 * i], sizeof row_bytes);
      CGCN_CHECK(row_bytes > 0 && row_bytes <= kRowBytes && bytes[48 + i] > 0 && bytes[48 + i] <= kRows);
      tiles_[i] = {bytes[48 + i], row_bytes, {}};
    }
    for (size_t i = 2; i < bytes.size(); ++i)  // what is reserved
      CGCN_CHECK(bytes[i] == 0 || (i >= 16 && i < 32) || (i >= 48 && i < 56), "byte {} is {}", i, bytes[i]);
  }
  void release() { tiles_ = {}; }

  void zero(size_t tile) { used(tile).bytes = {}; }
  void load(size_t tile, const void* from, size_t stride) {
    Tile& t = used(tile);
    t.bytes = {};  // as are the rows and columns that it does not have
    for (size_t r = 0; r < t.rows; ++r) std::memcpy(t.row(r), static_cast<const char*>(from) + r * stride, t.row_bytes);
  }
  void store(size_t tile, void* to, size_t stride) {
    Tile& t = used(tile);
    for (size_t r = 0; r < t.rows; ++r) std::memcpy(static_cast<char*>(to) + r * stride, t.row(r), t.row_bytes);
  }

  // C += A·B; B's rows are pairs of the product's. Even and odd terms are summed apart.
  void multiply(size_t sums, size_t left, size_t right) {
    Tile &c = used(sums), &a = used(left), &b = used(right);
    CGCN_CHECK(sums != left && sums != right && left != right);
    CGCN_CHECK(c.rows == a.rows && c.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows);
    for (size_t m = 0; m < c.rows; ++m)
      for (size_t n = 0; n < c.row_bytes / 4u; ++n) {
        float even = 0, odd = 0;
        for (size_t k = 0; k < b.rows; ++k) {
          even += half_of(a.row(m), 2 * k) * half_of(b.row(k), 2 * n);
          odd += half_of(a.row(m), 2 * k + 1) * half_of(b.row(k), 2 * n + 1);
        }
        float sum;
        std::memcpy(&sum, c.row(m) + 4 * n, sizeof sum);
        sum += even + odd;
        std::memcpy(c.row(m) + 4 * n, &sum, sizeof sum);
      }
  }

 private:
  static constexpr size_t kTiles = 8, kRows = 16, kRowBytes = 64;
  struct Tile {
    size_t rows = 0, row_bytes = 0;
    std::array<char, kRows* kRowBytes> bytes = {};
    char* row(size_t r) { return bytes.data() + r * kRowBytes; }
  };

  Tile& used(size_t tile) {
    CGCN_CHECK(tile < kTiles && tiles_[tile].rows > 0, "tile {} is not configured", tile);
    return tiles_[tile];
  }
  static float half_of(const char* row, size_t i) {
    BFloat16 half;
    std::memcpy(&half, row + i * sizeof half, sizeof half);
    return to_float(half);
  }

  std::array<Tile, kTiles> tiles_;
};

TileUnit& tile_unit() {
  static thread_local TileUnit unit;
  return unit;
}

}  // namespace
}  // namespace cgcn::kernels

#undef __mmask16
#undef __mmask32
#define __mmask16 simde__mmask16
#define __mmask32 simde__mmask32
#undef _CMP_UNORD_Q
#define _CMP_UNORD_Q SIMDE_CMP_UNORD_Q
#undef _mm512_maskz_loadu_ps
#undef _mm512_maskz_loadu_epi16
#undef _mm512_mask_storeu_ps
#undef _mm512_mask_storeu_epi16
#define _mm512_maskz_loadu_ps(mask, from) load_lanes<simde__m512>(mask, static_cast<const float*>(from))
#define _mm512_maskz_loadu_epi16(mask, from) load_lanes<simde__m512i>(mask, static_cast<const BFloat16*>(from))
#define _mm512_mask_storeu_ps(to, mask, v) store_lanes<float>(to, mask, v)
#define _mm512_mask_storeu_epi16(to, mask, v) store_lanes<BFloat16>(to, mask, v)
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh(high, low) round_both(high, low)
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) tile_unit().configure(config)
#define _tile_release() tile_unit().release()
#define _tile_zero(tile) tile_unit().zero(tile)
#define _tile_loadd(tile, from, stride) tile_unit().load(tile, from, stride)
#define _tile_stored(tile, to, stride) tile_unit().store(tile, to, stride)
#define _tile_dpbf16ps(sums, left, right) tile_unit().multiply(sums, left, right)
#define CGCN_AVX512
#define CGCN_AMX
#include "kernels/bfloat16_x86-inl.h"

namespace cgcn::kernels {

const BFloat16Functions& emulated_avx512_functions() { return kAvx512Functions; }
const BFloat16Functions& emulated_amx_functions() { return kAmxFunctions; }

}  // namespace cgcn::kernels
