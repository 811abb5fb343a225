#include "kernels/bfloat16_gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bfloat16_gemm.cc"
#include <algorithm>
#include <atomic>

#include "common/buffer.h"
#include "hwy/foreach_target.h"
#include "kernels/bfloat16_choice.h"
#include "kernels/gemm.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

using WordTag = hn::RebindToUnsigned<FloatTag>;
using WordVector = hn::Vec<WordTag>;

void widen_rows(ConstHalfMatrix from, Matrix to) {
  const FloatTag d;
  for (size_t r = 0; r < from.rows; ++r) {
    const BFloat16* in = from.row(r);
    float* out = to.row(r);
    for_vectors(
        from.columns, [&](size_t c) HWY_ATTR { hn::StoreU(load_values(d, in + c), d, out + c); },
        [&](size_t c, size_t rest) HWY_ATTR { store_first(load_values(d, in + c, rest), d, out + c, rest); });
  }
}

// Rows k0 … of B, whose columns have room up to whole panels. k0 is even.
void widen_panels(const PackedMatrix& b, size_t k0, Matrix to) {
  const FloatTag d;
  const WordTag words;
  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < b.columns; c += PackedMatrix::kPanel)
    for (size_t k = 0; k < to.rows; k += 2) {
      const auto* pairs = reinterpret_cast<const uint32_t*>(b.panel(c) + (k0 + k) * PackedMatrix::kPanel);
      for (size_t i = 0; i < PackedMatrix::kPanel; i += lanes) {
        const WordVector both = hn::LoadU(words, pairs + i);
        hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(both)), d, to.row(k) + c + i);
        if (k + 1 == to.rows) continue;
        hn::StoreU(hn::BitCast(d, hn::And(both, hn::Set(words, 0xFFFF0000u))), d, to.row(k + 1) + c + i);
      }
    }
}

void add_bias_and_round(ConstMatrix from, const float* bias, HalfMatrix to) {
  const FloatTag d;
  for (size_t r = 0; r < to.rows; ++r) {
    const float* in = from.row(r);
    BFloat16* out = to.row(r);
    for_vectors(
        to.columns,
        [&](size_t c) HWY_ATTR {
          const FloatVector sum = hn::LoadU(d, in + c);
          store_values(bias == nullptr ? sum : hn::Add(sum, hn::LoadU(d, bias + c)), d, out + c);
        },
        [&](size_t c, size_t rest) HWY_ATTR {
          const FloatVector sum = load_first(d, in + c, rest);
          store_values(bias == nullptr ? sum : hn::Add(sum, load_first(d, bias + c, rest)), d, out + c, rest);
        });
  }
}

// Columns of two rows, the upper one's number in the lower half of each word. A row below the last: zeros.
template <class T>
void pack_pairs(MatrixView<const T> b, RowRange columns, BFloat16* packed) {
  const FloatTag d;
  const WordTag words;
  const size_t lanes = hn::Lanes(d), height = PackedMatrix::round_up(b.rows);
  for (size_t c = columns.begin; c < PackedMatrix::round_up(columns.end); c += PackedMatrix::kPanel)
    for (size_t k = 0; k < height; k += 2)
      for (size_t i = 0; i < PackedMatrix::kPanel; i += lanes) {
        const size_t column = c + i, rest = column < columns.end ? columns.end - column : 0;
        const auto row = [&](size_t r) HWY_ATTR {
          if (r >= b.rows || rest == 0) return hn::Zero(words);
          const FloatVector v =
              rest >= lanes ? load_values(d, b.row(r) + column) : load_values(d, b.row(r) + column, rest);
          return rounded_bits(v);
        };
        const WordVector low = hn::ShiftRight<16>(row(k)), high = hn::And(row(k + 1), hn::Set(words, 0xFFFF0000u));
        auto* panel = reinterpret_cast<uint32_t*>(packed + c * height + k * PackedMatrix::kPanel);
        hn::StoreU(hn::Or(low, high), words, panel + i);
      }
}

void pack_float_pairs(ConstMatrix b, RowRange columns, BFloat16* packed) { pack_pairs(b, columns, packed); }
void pack_half_pairs(ConstHalfMatrix b, RowRange columns, BFloat16* packed) { pack_pairs(b, columns, packed); }

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(widen_rows);
HWY_EXPORT(widen_panels);
HWY_EXPORT(add_bias_and_round);
HWY_EXPORT(pack_float_pairs);
HWY_EXPORT(pack_half_pairs);

namespace {

void pack_floats(ConstMatrix b, RowRange columns, BFloat16* packed) {
  HWY_DYNAMIC_DISPATCH(pack_float_pairs)(b, columns, packed);
}
void pack_halves(ConstHalfMatrix b, RowRange columns, BFloat16* packed) {
  HWY_DYNAMIC_DISPATCH(pack_half_pairs)(b, columns, packed);
}
void pack_transposed_floats(ConstMatrix w, RowRange columns, BFloat16* packed) {
  constexpr size_t kPanel = PackedMatrix::kPanel;
  const size_t height = PackedMatrix::round_up(w.columns);
  for (size_t c = columns.begin; c < PackedMatrix::round_up(columns.end); ++c) {
    BFloat16* panel = packed + c / kPanel * kPanel * height + c % kPanel * 2;
    for (size_t k = 0; k < height; ++k)
      panel[k / 2 * 2 * kPanel + k % 2] = k < w.columns && c < columns.end ? to_bfloat16(w.row(c)[k]) : BFloat16();
  }
}

// The products of processors without such instructions: tiles of the factors become float32 in buffers of the thread,
// small enough for the second-level cache, and gemm.h multiplies these.
constexpr size_t kTile = 512, kTileColumns = 256;

struct WideTiles {
  static constexpr size_t kSize = kTile * (kTile + 2 * kTileColumns);
  Buffer<float> memory{kSize};
  float *left = memory.data(), *right = left + kTile * kTile, *sums = right + kTile * kTileColumns;
};
WideTiles& wide_tiles() {
  static thread_local WideTiles tiles;
  return tiles;
}

Matrix widen(const PackedMatrix& b, size_t k0, size_t k1) {
  const Matrix to(wide_tiles().right, k1 - k0, PackedMatrix::round_up(b.columns));
  HWY_DYNAMIC_DISPATCH(widen_panels)(b, k0, to);
  return to.columns_from(0, b.columns);
}
Matrix widen(ConstHalfMatrix a) {
  const Matrix to(wide_tiles().left, a.rows, a.columns);
  HWY_DYNAMIC_DISPATCH(widen_rows)(a, to);
  return to;
}

// use(begin, end) for pieces of [0, size).
template <class Use>
void for_tiles(size_t size, size_t tile, Use&& use) {
  for (size_t begin = 0; begin < size; begin += tile) use(begin, std::min(size, begin + tile));
}

void multiply_tile(ConstHalfMatrix a, const PackedMatrix& b, Rows c, const float* bias) {
  const Matrix sums = c.is_half() ? Matrix(wide_tiles().sums, c.rows, c.columns) : c.floats();
  const bool begun = bias != nullptr && !c.is_half();
  for (size_t r = 0; begun && r < c.rows; ++r) std::copy_n(bias, c.columns, sums.row(r));
  for_tiles(a.columns, kTile, [&](size_t k0, size_t k1) {
    multiply(widen(a.columns_from(k0, k1)), widen(b, k0, k1), sums, begun || k0 > 0 ? 1 : 0);
  });
  if (c.is_half()) HWY_DYNAMIC_DISPATCH(add_bias_and_round)(sums, bias, c.halves());
}

void multiply_widened(ConstHalfMatrix a, const PackedMatrix& b, Rows c, const float* bias) {
  for_tiles(c.rows, kTile, [&](size_t row, size_t row_end) {
    for_tiles(c.columns, kTileColumns, [&](size_t column, size_t column_end) {
      multiply_tile(a.rows_from(row, row_end), b.columns_from(column, column_end),
                    c.tile(row, row_end, column, column_end), bias != nullptr ? bias + column : nullptr);
    });
  });
}

void multiply_widened_transpose(ConstHalfMatrix a, const PackedMatrix& b, Matrix c) {
  for_tiles(c.columns, kTileColumns, [&](size_t column, size_t column_end) {
    for_tiles(a.rows, kTile, [&](size_t k0, size_t k1) {
      const Matrix right = widen(b.columns_from(column, column_end), k0, k1);
      for_tiles(c.rows, kTile, [&](size_t row, size_t row_end) {
        multiply_by_transpose_of(widen(a.tile(k0, k1, row, row_end)), right, c.tile(row, row_end, column, column_end),
                                 k0 > 0 ? 1 : 0);
      });
    });
  });
}

constexpr BFloat16Functions kPortable = {multiply_widened, pack_floats, pack_transposed_floats,
                                         pack_halves,      nullptr,     WideTiles::kSize * sizeof(float)};

std::atomic<const BFloat16Functions*>& chosen() {
  static std::atomic<const BFloat16Functions*> functions = bfloat16_functions(best_bfloat16_kernels());
  return functions;
}
const BFloat16Functions& functions() { return *chosen().load(std::memory_order_relaxed); }

}  // namespace

BFloat16Kernels best_bfloat16_kernels() {
  if (amx_functions() != nullptr) return BFloat16Kernels::kAmx;
  return avx512_is_faster() ? BFloat16Kernels::kAvx512 : BFloat16Kernels::kFloat32;
}
const BFloat16Functions* bfloat16_functions(BFloat16Kernels kernels) {
  if (kernels == BFloat16Kernels::kAmx) return amx_functions();
  if (kernels == BFloat16Kernels::kAvx512) return avx512_functions();
  return &kPortable;
}
void use_bfloat16_functions(const BFloat16Functions* functions) {
  CGCN_CHECK(functions != nullptr);
  chosen() = functions;
}
std::string name_of(BFloat16Kernels kernels) {
  if (kernels == BFloat16Kernels::kAmx) return "AMX";
  return kernels == BFloat16Kernels::kAvx512 ? "AVX512-BF16" : "float32";
}

void pack(ConstMatrix b, RowRange columns, BFloat16* packed) { functions().pack(b, columns, packed); }
void pack_transposed(ConstMatrix w, RowRange columns, BFloat16* packed) {
  functions().pack_transposed(w, columns, packed);
}
void pack(ConstHalfMatrix b, RowRange columns, BFloat16* packed) { functions().pack_half(b, columns, packed); }

void multiply(ConstHalfMatrix a, const PackedMatrix& b, Rows c, const float* bias) {
  CGCN_CHECK(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows);
  functions().multiply(a, b, c, bias);
}

namespace {

constexpr size_t kTurned = 128;  // columns of A
size_t turned_length(size_t rows) { return padded_stride(PackedMatrix::round_up(rows), Precision::kBFloat16); }
size_t turned_size(size_t rows) { return functions().transpose != nullptr ? kTurned * turned_length(rows) : 0; }

}  // namespace

size_t product_scratch_bytes(size_t transposed_rows) {
  return functions().scratch_bytes + (transposed_rows > 0 ? turned_size(transposed_rows) * sizeof(BFloat16) : 0);
}

// A tile of A's columns is turned into rows at a time; these are the left factor of a product like the others.
void multiply_by_transpose_of(ConstHalfMatrix a, const PackedMatrix& b, Matrix c) {
  CGCN_CHECK(a.columns == c.rows && b.columns == c.columns && a.rows == b.rows);
  if (functions().transpose == nullptr) return multiply_widened_transpose(a, b, c);
  const size_t length = turned_length(a.rows);
  static thread_local Buffer<BFloat16> turned;
  turned.reserve_discarding(turned_size(a.rows));
  for (size_t begin = 0; begin < c.rows; begin += kTurned) {
    const size_t end = std::min(c.rows, begin + kTurned);
    const HalfMatrix rows(turned.data(), end - begin, PackedMatrix::round_up(a.rows), length);
    functions().transpose(a.columns_from(begin, end), rows);
    functions().multiply(ConstHalfMatrix(rows).columns_from(0, a.rows), b, c.rows_from(begin, end), nullptr);
  }
}

}  // namespace cgcn::kernels
#endif
