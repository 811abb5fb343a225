#include "kernels/gemm.h"

#include <algorithm>
#include <climits>

#include "common/error.h"
#include "kernels/blas.h"
#include "kernels/tile_product.h"

namespace cgcn::kernels {
namespace {

void call_sgemm(CBLAS_TRANSPOSE transpose_a, CBLAS_TRANSPOSE transpose_b, size_t inner, ConstMatrix a, ConstMatrix b,
                Matrix c, float keep) {
  if (c.rows == 0 || c.columns == 0) return;
  const auto as_int = [](size_t value) {  // BLAS counts in 32 bits
    CGCN_CHECK(value <= INT_MAX, "a matrix of {} rows or columns", value);
    return static_cast<int>(value);
  };
  blas_sgemm()(CblasRowMajor, transpose_a, transpose_b, as_int(c.rows), as_int(c.columns), as_int(inner), 1.0f, a.data,
               as_int(a.stride), b.data, as_int(b.stride), keep, c.data, as_int(c.stride));
}

}  // namespace

void multiply(ConstMatrix a, ConstMatrix b, Matrix c, float keep) {
  CGCN_CHECK(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows);
  if (!multiply_tile(TileProduct::kPlain, a, b, c, keep))
    call_sgemm(CblasNoTrans, CblasNoTrans, a.columns, a, b, c, keep);
}

void multiply_and_add(ConstMatrix a, ConstMatrix b, const float* bias, Matrix c) {
  CGCN_CHECK(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows);
  if (multiply_tile(TileProduct::kPlain, a, b, c, 0, bias)) return;
  for (size_t r = 0; r < c.rows; ++r) std::copy_n(bias, c.columns, c.row(r));
  call_sgemm(CblasNoTrans, CblasNoTrans, a.columns, a, b, c, 1);
}

// Our own sums a row by itself; OpenBLAS's kernels differ from row to row.
bool rows_are_independent() { return multiply_tile(TileProduct::kPlain, {}, {}, {}, 0); }

void multiply_transposed(ConstMatrix a, ConstMatrix b, Matrix c, float keep) {
  CGCN_CHECK(a.rows == c.rows && b.rows == c.columns && a.columns == b.columns);
  if (!multiply_tile(TileProduct::kRightTransposed, a, b, c, keep))
    call_sgemm(CblasNoTrans, CblasTrans, a.columns, a, b, c, keep);
}

void multiply_by_transpose_of(ConstMatrix a, ConstMatrix b, Matrix c, float keep) {
  CGCN_CHECK(a.columns == c.rows && b.columns == c.columns && a.rows == b.rows);
  if (!multiply_tile(TileProduct::kLeftTransposed, a, b, c, keep))
    call_sgemm(CblasTrans, CblasNoTrans, a.rows, a, b, c, keep);
}

namespace {

size_t even_count(size_t n, size_t target) { return 2 * std::max<size_t>(1, (n + target) / (2 * target)); }
size_t count_of(size_t n, size_t target) { return std::max<size_t>(1, (n + target - 1) / target); }

}  // namespace

Tiles Tiles::of_rows(size_t rows, size_t columns, size_t unit) {
  return {{rows, even_count(rows, 512)}, {columns, count_of(columns, 256), unit}};
}

Tiles Tiles::of_weights(size_t rows, size_t columns, size_t unit) {
  if (rows < 256) return {{rows, 1}, {columns, even_count(columns, 256), unit}};
  return {{rows, even_count(rows, 256)}, {columns, count_of(columns, 512), unit}};
}

}  // namespace cgcn::kernels
