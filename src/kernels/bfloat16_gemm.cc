#include "kernels/bfloat16_gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bfloat16_gemm.cc"
#include <algorithm>
#include <atomic>

#include "common/buffer.h"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

// kRows rows by one panel: two rows of B lie in one vector, which is parted into the even and the odd one.
template <int kRows>
HWY_INLINE void multiply_panel(ConstHalfMatrix a, const BFloat16* panel, size_t r, size_t c, const float* bias,
                               const Rows& to) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  constexpr size_t kMostVectors =
      PackedMatrix::kPanel / HWY_LANES(float) > 0 ? PackedMatrix::kPanel / HWY_LANES(float) : 1;
  const size_t lanes = hn::Lanes(d);
  FloatVector sums[kRows][kMostVectors];
  for (size_t first = 0; first < PackedMatrix::kPanel; first += kMostVectors * lanes) {
    for (auto& row : sums)
      for (FloatVector& sum : row) sum = hn::Zero(d);
    for (size_t k = 0; k < a.columns; k += 2) {
      FloatVector even[kMostVectors], odd[kMostVectors];
      for (size_t v = 0; v < kMostVectors; ++v) {
        const auto pairs = hn::LoadU(du, reinterpret_cast<const uint32_t*>(panel + (k + 0) * 16) + first + v * lanes);
        even[v] = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
        odd[v] = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000u)));
      }
      for (int i = 0; i < kRows; ++i) {
        const BFloat16* row = a.row(r + static_cast<size_t>(i));
        const FloatVector x = hn::Set(d, to_float(row[k]));
        const FloatVector y = hn::Set(d, k + 1 < a.columns ? to_float(row[k + 1]) : 0.0f);
        for (size_t v = 0; v < kMostVectors; ++v)
          sums[i][v] = hn::MulAdd(y, odd[v], hn::MulAdd(x, even[v], sums[i][v]));
      }
    }
    HWY_ALIGN float values[PackedMatrix::kPanel];
    for (int i = 0; i < kRows; ++i) {
      for (size_t v = 0; v < kMostVectors; ++v) hn::StoreU(sums[i][v], d, values + v * lanes);
      const size_t begin = c + first, end = std::min(to.columns, begin + kMostVectors * lanes);
      to.visit([&](auto out) {
        for (size_t j = begin; j < end; ++j)
          store(values[j - begin] + (bias != nullptr ? bias[j] : 0.0f), out.row(r + static_cast<size_t>(i))[j]);
      });
    }
  }
}

void multiply_float32(ConstHalfMatrix a, const PackedMatrix& b, Rows to, const float* bias) {
  constexpr int kRows = 4;
  for (size_t c = 0; c < to.columns; c += PackedMatrix::kPanel) {
    size_t r = 0;
    for (; r + kRows <= a.rows; r += kRows) multiply_panel<kRows>(a, b.panel(c), r, c, bias, to);
    for (; r < a.rows; ++r) multiply_panel<1>(a, b.panel(c), r, c, bias, to);
  }
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(multiply_float32);

namespace {

// at(k, c): element of B, rounded; zero outside of rows × columns.
template <class At>
void pack_elements(size_t rows, RowRange columns, BFloat16* packed, At&& at) {
  const size_t height = PackedMatrix::round_up(rows);
  for (size_t c = columns.begin; c < PackedMatrix::round_up(columns.end); ++c) {
    BFloat16* panel = packed + c / PackedMatrix::kPanel * PackedMatrix::kPanel * height + c % PackedMatrix::kPanel * 2;
    for (size_t k = 0; k < height; ++k)
      panel[k / 2 * 2 * PackedMatrix::kPanel + k % 2] = k < rows && c < columns.end ? at(k, c) : BFloat16();
  }
}

void pack_floats(ConstMatrix b, RowRange columns, BFloat16* packed) {
  pack_elements(b.rows, columns, packed, [&](size_t k, size_t c) { return to_bfloat16(b.row(k)[c]); });
}
void pack_transposed_floats(ConstMatrix w, RowRange columns, BFloat16* packed) {
  pack_elements(w.columns, columns, packed, [&](size_t k, size_t c) { return to_bfloat16(w.row(c)[k]); });
}
void pack_halves(ConstHalfMatrix b, RowRange columns, BFloat16* packed) {
  pack_elements(b.rows, columns, packed, [&](size_t k, size_t c) { return b.row(k)[c]; });
}
void transpose_halves(ConstHalfMatrix a, HalfMatrix out) {
  for (size_t r = 0; r < out.rows; ++r)
    for (size_t c = 0; c < out.columns; ++c) out.row(r)[c] = c < a.rows ? a.row(c)[r] : BFloat16();
}
void multiply_portable(ConstHalfMatrix a, const PackedMatrix& b, Rows c, const float* bias) {
  HWY_DYNAMIC_DISPATCH(multiply_float32)(a, b, c, bias);
}

constexpr BFloat16Functions kPortable = {multiply_portable, pack_floats, pack_transposed_floats, pack_halves,
                                         transpose_halves};

const BFloat16Functions* functions_of(BFloat16Kernels kernels) {
  if (kernels == BFloat16Kernels::kAmx) return amx_functions();
  if (kernels == BFloat16Kernels::kAvx512) return avx512_functions();
  return &kPortable;
}

std::atomic<BFloat16Kernels>& chosen() {
  static std::atomic<BFloat16Kernels> kernels = best_bfloat16_kernels();
  return kernels;
}
const BFloat16Functions& functions() { return *functions_of(chosen().load(std::memory_order_relaxed)); }

}  // namespace

BFloat16Kernels best_bfloat16_kernels() {
  if (amx_functions() != nullptr) return BFloat16Kernels::kAmx;
  return avx512_functions() != nullptr ? BFloat16Kernels::kAvx512 : BFloat16Kernels::kFloat32;
}
void use_bfloat16_kernels(BFloat16Kernels kernels) {
  CGCN_CHECK(functions_of(kernels) != nullptr);
  chosen() = kernels;
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

// A block of A's columns is turned into rows at a time; these are the left factor of a product like the others.
void multiply_by_transpose_of(ConstHalfMatrix a, const PackedMatrix& b, Matrix c) {
  CGCN_CHECK(a.columns == c.rows && b.columns == c.columns && a.rows == b.rows);
  constexpr size_t kBlock = 128;
  const size_t length = padded_stride(PackedMatrix::round_up(a.rows), Precision::kBFloat16);
  static thread_local Buffer<BFloat16> turned;
  turned.reserve_discarding(kBlock * length);
  for (size_t begin = 0; begin < c.rows; begin += kBlock) {
    const size_t end = std::min(c.rows, begin + kBlock);
    const HalfMatrix rows(turned.data(), end - begin, PackedMatrix::round_up(a.rows), length);
    functions().transpose(a.columns_from(begin, end), rows);
    functions().multiply(ConstHalfMatrix(rows).columns_from(0, a.rows), b, c.rows_from(begin, end), nullptr);
  }
}

}  // namespace cgcn::kernels
#endif
