// The products of bfloat16_gemm.h by AVX512-BF16 and by AMX, whose tiles hold 16 × 32 elements. Who includes this has
// declared the instructions and what a function needs to be compiled for them (CGCN_AVX512, CGCN_AMX): the
// processor's (bfloat16_x86.cc), or in tests functions that do the same on any processor.
#include <algorithm>

#include "common/buffer.h"
#include "kernels/bfloat16_gemm.h"

#define CGCN_AVX512_INLINE CGCN_AVX512 __attribute__((always_inline)) inline

namespace cgcn::kernels {
namespace {

constexpr size_t kUnit = PackedMatrix::kUnit;

// Bits of the first n of 16 or 32 lanes.
__mmask16 first16(size_t n) { return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1u << n) - 1); }
__mmask32 first32(size_t n) { return n >= 32 ? 0xFFFFFFFFu : (1u << n) - 1; }

// to_bfloat16, in the upper half of each lane.
CGCN_AVX512_INLINE __m512i round_lanes(__m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7FFF));
  const __mmask16 no_number = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(rounded, no_number, bits, _mm512_set1_epi32(0x400000));
}

// Lane i: `low` in its lower half, `high` in its upper.
CGCN_AVX512_INLINE __m512i pair_lanes(__m512 low, __m512 high) {
  return _mm512_mask_blend_epi16(0xAAAAAAAAu, _mm512_srli_epi32(round_lanes(low), 16), round_lanes(high));
}

// 32 floats as bfloat16, in order.
CGCN_AVX512_INLINE __m512i join_lanes(__m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kUpperHalves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                            23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                            45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(round_lanes(first), _mm512_load_si512(kUpperHalves), round_lanes(second));
}

// Pairs (a_i, b_i) of columns 0 … 15, and of columns 16 … 31.
CGCN_AVX512_INLINE void pair_rows(__m512i a, __m512i b, __m512i& low, __m512i& high) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i index = _mm512_load_si512(kLow);
  low = _mm512_permutex2var_epi16(a, index, b);
  high = _mm512_permutex2var_epi16(a, _mm512_add_epi16(index, _mm512_set1_epi16(16)), b);
}

// 16 × 16 lanes.
CGCN_AVX512_INLINE void transpose_lanes(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
  }
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
  }
}

CGCN_AVX512 void pack_floats(ConstMatrix b, RowRange columns, BFloat16* packed) {
  const size_t height = PackedMatrix::round_up(b.rows);
  for (size_t c = columns.begin; c < PackedMatrix::round_up(columns.end); c += 16) {
    const __mmask16 mask = first16(c < b.columns ? b.columns - c : 0);
    BFloat16* panel = packed + c * height;
    for (size_t k = 0; k < height; k += 2) {
      const __m512 low = k < b.rows ? _mm512_maskz_loadu_ps(mask, b.row(k) + c) : _mm512_setzero_ps();
      const __m512 high = k + 1 < b.rows ? _mm512_maskz_loadu_ps(mask, b.row(k + 1) + c) : _mm512_setzero_ps();
      _mm512_storeu_si512(panel + k * 16, pair_lanes(low, high));
    }
  }
}

CGCN_AVX512 void pack_transposed_floats(ConstMatrix w, RowRange columns, BFloat16* packed) {
  const size_t height = PackedMatrix::round_up(w.columns);
  for (size_t c = columns.begin; c < PackedMatrix::round_up(columns.end); c += 16) {
    BFloat16* panel = packed + c * height;
    for (size_t k = 0; k < height; k += kUnit) {
      const size_t rest = w.columns - std::min(w.columns, k);
      const __mmask16 first = first16(rest), second = first16(rest > 16 ? rest - 16 : 0);
      __m512i lanes[16];
      for (size_t i = 0; i < 16; ++i) {
        if (c + i >= w.rows) {
          lanes[i] = _mm512_setzero_si512();
          continue;
        }
        const float* row = w.row(c + i) + k;
        lanes[i] = join_lanes(_mm512_maskz_loadu_ps(first, row), _mm512_maskz_loadu_ps(second, row + 16));
      }
      transpose_lanes(lanes);
      for (size_t i = 0; i < 16; ++i) _mm512_storeu_si512(panel + (k + 2 * i) * 16, lanes[i]);
    }
  }
}

// Columns c … c + 31 of row r; zero beyond the matrix.
CGCN_AVX512_INLINE __m512i load_row(ConstHalfMatrix m, size_t r, size_t c) {
  if (r >= m.rows || c >= m.columns) return _mm512_setzero_si512();
  return _mm512_maskz_loadu_epi16(first32(m.columns - c), m.row(r) + c);
}

CGCN_AVX512 void pack_halves(ConstHalfMatrix b, RowRange columns, BFloat16* packed) {
  const size_t height = PackedMatrix::round_up(b.rows);
  for (size_t c = columns.begin; c < PackedMatrix::round_up(columns.end); c += kUnit) {
    BFloat16 *first = packed + c * height, *second = first + 16 * height;
    for (size_t k = 0; k < height; k += 2) {
      __m512i low, high;
      pair_rows(load_row(b, k, c), load_row(b, k + 1, c), low, high);
      _mm512_storeu_si512(first + k * 16, low);
      _mm512_storeu_si512(second + k * 16, high);
    }
  }
}

CGCN_AVX512 void transpose_halves(ConstHalfMatrix a, HalfMatrix out) {
  for (size_t c = 0; c < a.columns; c += kUnit)
    for (size_t k = 0; k < out.columns; k += kUnit) {
      __m512i low[16], high[16];
      for (size_t i = 0; i < 16; ++i)
        pair_rows(load_row(a, k + 2 * i, c), load_row(a, k + 2 * i + 1, c), low[i], high[i]);
      transpose_lanes(low);
      transpose_lanes(high);
      for (size_t i = 0; i < 16; ++i) {
        if (c + i < a.columns) _mm512_storeu_si512(out.row(c + i) + k, low[i]);
        if (c + 16 + i < a.columns) _mm512_storeu_si512(out.row(c + 16 + i) + k, high[i]);
      }
    }
}

// Where 32 columns of sums go, and the bias that is added to them.
struct SumColumns {
  Rows to;
  size_t first;
  __mmask16 low, high;
  const float* bias;

  SumColumns(const Rows& rows, size_t column, const float* all_bias)
      : to(rows),
        first(column),
        low(first16(rows.columns - column)),
        high(first16(rows.columns > column + 16 ? rows.columns - column - 16 : 0)),
        bias(all_bias) {}
  CGCN_AVX512_INLINE void store(size_t r, __m512 left, __m512 right) const {
    if (bias != nullptr) {
      left = _mm512_add_ps(left, _mm512_maskz_loadu_ps(low, bias + first));
      right = _mm512_add_ps(right, _mm512_maskz_loadu_ps(high, bias + first + 16));
    }
    if (to.is_half()) {
      _mm512_mask_storeu_epi16(static_cast<BFloat16*>(to.data) + r * to.stride + first, uint32_t{high} << 16 | low,
                               (__m512i)_mm512_cvtne2ps_pbh(right, left));
    } else {
      float* row = static_cast<float*>(to.data) + r * to.stride + first;
      _mm512_mask_storeu_ps(row, low, left);
      _mm512_mask_storeu_ps(row + 16, high, right);
    }
  }
};

// kRows rows by two panels, summed in registers.
template <int kRows>
CGCN_AVX512 void multiply_rows(ConstHalfMatrix a, const PackedMatrix& b, size_t r, size_t c, const float* bias,
                               const Rows& to) {
  const BFloat16 *first = b.panel(c), *second = b.panel(c + 16);
  __m512 low[kRows], high[kRows];
  for (int i = 0; i < kRows; ++i) low[i] = high[i] = _mm512_setzero_ps();
  const auto add = [&](size_t k, auto&& pair_at) CGCN_AVX512 {
    const auto b0 = (__m512bh)_mm512_loadu_si512(first + k * 16), b1 = (__m512bh)_mm512_loadu_si512(second + k * 16);
    for (int i = 0; i < kRows; ++i) {
      const auto pair = (__m512bh)_mm512_set1_epi32(pair_at(a.row(r + i) + k));
      low[i] = _mm512_dpbf16_ps(low[i], pair, b0);
      high[i] = _mm512_dpbf16_ps(high[i], pair, b1);
    }
  };
  size_t k = 0;
  for (; k + 2 <= a.columns; k += 2)
    add(k, [](const BFloat16* at) {
      int pair;
      __builtin_memcpy(&pair, at, sizeof pair);
      return pair;
    });
  if (k < a.columns) add(k, [](const BFloat16* at) { return int{at->bits}; });
  const SumColumns columns(to, c, bias);
  for (int i = 0; i < kRows; ++i) columns.store(r + i, low[i], high[i]);
}

CGCN_AVX512 void multiply_avx512(ConstHalfMatrix a, const PackedMatrix& b, Rows to, const float* bias) {
  constexpr int kRows = 8;
  for (size_t c = 0; c < to.columns; c += kUnit) {
    size_t r = 0;
    for (; r + kRows <= a.rows; r += kRows) multiply_rows<kRows>(a, b, r, c, bias, to);
    for (; r < a.rows; ++r) multiply_rows<1>(a, b, r, c, bias, to);
  }
}

// Tiles 0 … 3: the sums of 32 × 32; 4 and 5: rows of A; 6 and 7: panels of B.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, unused[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The instructions read and write memory that the compiler does not see them use.
inline void order_memory() { __asm__ volatile("" ::: "memory"); }

CGCN_AMX void configure_tiles(size_t rows) {
  TileConfig config;
  const auto first = static_cast<uint8_t>(std::min<size_t>(rows, 16));
  const auto second = static_cast<uint8_t>(rows > 16 ? rows - 16 : 1);  // unused if there are none
  const uint8_t tile_rows[8] = {first, first, second, second, first, second, 16, 16};
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = tile_rows[i];
  }
  order_memory();
  _tile_loadconfig(&config);
}

// Up to 32 rows of A. rest: what of the last columns is no multiple of 32, those from `whole` on, followed by zeros.
struct LeftRows {
  const BFloat16* first;
  size_t stride;
  const BFloat16* rest;
  size_t whole;
};

// Two panels of B, and which of its rows.
struct RightPanels {
  const BFloat16 *first, *second;
  RowRange terms;
};

// 32 × 32 sums.
struct SumTiles {
  float* first;
  size_t stride;
  float* lower() const { return first + 16 * stride; }
};

// The rows times two panels, added to `sums` or, for the first terms, put there.
template <bool kTwo>
CGCN_AMX __attribute__((always_inline)) inline void multiply_tiles(const LeftRows& a, const RightPanels& b,
                                                                   const SumTiles& sums) {
  const size_t sum_bytes = sums.stride * sizeof(float);
  if (b.terms.begin == 0) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums.first, sum_bytes);
    _tile_loadd(1, sums.first + 16, sum_bytes);
    if (kTwo) {
      _tile_loadd(2, sums.lower(), sum_bytes);
      _tile_loadd(3, sums.lower() + 16, sum_bytes);
    }
  }
  const BFloat16 *upper = a.first, *lower = a.first + 16 * a.stride;
  size_t row_bytes = a.stride * sizeof(BFloat16);
  for (size_t k = b.terms.begin; k < b.terms.end; k += kUnit) {
    size_t at = k;
    if (k >= a.whole) {
      upper = a.rest;
      lower = a.rest + 16 * kUnit;
      row_bytes = kUnit * sizeof(BFloat16);
      at = 0;
    }
    _tile_loadd(4, upper + at, row_bytes);
    _tile_loadd(6, b.first + k * 16, 64);
    _tile_loadd(7, b.second + k * 16, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (kTwo) {
      _tile_loadd(5, lower + at, row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums.first, sum_bytes);
  _tile_stored(1, sums.first + 16, sum_bytes);
  if (kTwo) {
    _tile_stored(2, sums.lower(), sum_bytes);
    _tile_stored(3, sums.lower() + 16, sum_bytes);
  }
}

// A tile of the result at a time. Its sums are cut into stretches, so that the rows of A, as far as they are in one,
// stay in the second-level cache while the panels of B pass by, and the piece of a panel in the first for all rows.
class AmxProduct {
 public:
  static constexpr size_t kMostRows = 512, kMostColumns = 256, kWholeSum = 1536, kCutSum = 512;
  static constexpr size_t kScratchBytes = kMostRows * (kMostColumns * sizeof(float) + kUnit * sizeof(BFloat16));

  CGCN_AMX AmxProduct(ConstHalfMatrix a, const PackedMatrix& b, const Rows& to, const float* bias)
      : a_(a), b_(b), to_(to), bias_(bias), is_cut_(b.rows > kWholeSum) {
    static thread_local Buffer<float> sums;
    static thread_local Buffer<BFloat16> rest;
    sums.reserve_discarding(kMostRows * (is_cut_ ? kMostColumns : kUnit));
    rest.reserve_discarding(kMostRows * kUnit);
    sums_ = sums.data();
    rest_ = rest.data();
  }
  CGCN_AMX ~AmxProduct() { _tile_release(); }
  AmxProduct(const AmxProduct&) = delete;
  AmxProduct& operator=(const AmxProduct&) = delete;

  CGCN_AMX void multiply(RowRange rows, RowRange columns) {
    const size_t height = PackedMatrix::round_up(b_.rows), length = is_cut_ ? kCutSum : height;
    for (size_t r = rows.begin; r < rows.end && height > b_.rows; ++r)
      _mm512_store_si512(rest_ + (r - rows.begin) * kUnit, load_row(a_, r, whole_terms()));
    for (size_t k = 0; k < height; k += length)
      for (size_t c = columns.begin; c < columns.end; c += kUnit) {
        const RightPanels panels{b_.panel(c), b_.panel(c + 16), {k, std::min(height, k + length)}};
        multiply(rows, {c, columns.begin}, panels, panels.terms.end == height);
      }
  }

 private:
  struct Column {
    size_t begin, first_of_tile;
  };

  CGCN_AMX void multiply(RowRange all, Column column, const RightPanels& panels, bool last) {
    const SumColumns target(to_, column.begin, bias_);
    const bool in_place = !to_.is_half() && bias_ == nullptr && column.begin + kUnit <= to_.columns;
    for (size_t r = all.begin; r < all.end; r += kUnit) {
      const RowRange rows{r, std::min(all.end, r + kUnit)};
      SumTiles sums{sums_of(r - all.begin, column.begin - column.first_of_tile), kUnit};
      if (in_place) sums = {static_cast<float*>(to_.data) + r * to_.stride + column.begin, to_.stride};
      multiply(rows, rest_ + (r - all.begin) * kUnit, panels, sums);
      if (in_place || !last) continue;
      for (size_t i = 0; i < rows.size(); ++i, sums.first += kUnit)
        target.store(r + i, _mm512_load_ps(sums.first), _mm512_load_ps(sums.first + 16));
    }
  }

  CGCN_AMX void multiply(RowRange rows, const BFloat16* rest, const RightPanels& panels, const SumTiles& sums) {
    if (rows.size() != configured_) configure_tiles(configured_ = rows.size());
    order_memory();
    const LeftRows left{a_.row(rows.begin), a_.stride, rest, whole_terms()};
    if (rows.size() > 16)
      multiply_tiles<true>(left, panels, sums);
    else
      multiply_tiles<false>(left, panels, sums);
    order_memory();
  }

  size_t whole_terms() const { return b_.rows / kUnit * kUnit; }
  // Sums that are cut have a place each until they are complete.
  float* sums_of(size_t row, size_t column) const { return sums_ + ((is_cut_ ? column : 0) * kMostRows + row * kUnit); }

  ConstHalfMatrix a_;
  const PackedMatrix& b_;
  const Rows& to_;
  const float* bias_;
  bool is_cut_;
  float* sums_;
  BFloat16* rest_;  // the last columns of a group's rows
  size_t configured_ = 0;
};

CGCN_AMX void multiply_amx(ConstHalfMatrix a, const PackedMatrix& b, Rows to, const float* bias) {
  if (a.rows == 0) return;
  const size_t groups = (a.rows + AmxProduct::kMostRows - 1) / AmxProduct::kMostRows;
  const size_t group = PackedMatrix::round_up((a.rows + groups - 1) / groups);
  AmxProduct product(a, b, to, bias);
  for (size_t r = 0; r < a.rows; r += group)
    for (size_t c = 0; c < to.columns; c += AmxProduct::kMostColumns)
      product.multiply({r, std::min(a.rows, r + group)}, {c, std::min(to.columns, c + AmxProduct::kMostColumns)});
}

constexpr BFloat16Functions kAvx512Functions = {multiply_avx512, pack_floats,      pack_transposed_floats,
                                                pack_halves,     transpose_halves, 0};
constexpr BFloat16Functions kAmxFunctions = {multiply_amx, pack_floats,      pack_transposed_floats,
                                             pack_halves,  transpose_halves, AmxProduct::kScratchBytes};

}  // namespace
}  // namespace cgcn::kernels
