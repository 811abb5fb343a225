// Matrices in float32 or in bfloat16, which take half the memory; sums are float32 everywhere.
#pragma once

#include <cstddef>
#include <type_traits>

#include "common/bfloat16.h"
#include "common/error.h"
#include "kernels/matrix.h"

namespace cgcn::kernels {

inline void store(float value, float& to) { to = value; }
inline void store(float value, BFloat16& to) { to = to_bfloat16(value); }

using HalfMatrix = MatrixView<BFloat16>;
using ConstHalfMatrix = MatrixView<const BFloat16>;

enum class Precision { kFloat32, kBFloat16 };

inline size_t bytes_of(Precision precision) { return precision == Precision::kFloat32 ? 4 : 2; }

// In elements: an odd number of cache lines, as padded_stride(columns) of floats.
inline size_t padded_stride(size_t columns, Precision precision) {
  const size_t line = 64 / bytes_of(precision);
  return ((columns + line - 1) / line | 1) * line;
}

// A matrix in either precision: what the layers pass to one another. visit() calls with the typed view.
template <class Void>
struct RowsView {
  template <class T>
  using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;

  Void* data = nullptr;
  size_t rows = 0, columns = 0, stride = 0;
  Precision precision = Precision::kFloat32;

  RowsView() = default;
  RowsView(Void* first, size_t row_count, size_t column_count, size_t row_stride, Precision stored)
      : data(first), rows(row_count), columns(column_count), stride(row_stride), precision(stored) {}
  template <class T>
  requires std::is_same_v < std::remove_const_t<T>,
  float > ||
      std::is_same_v<std::remove_const_t<T>, BFloat16> RowsView(const MatrixView<T>& m)  // NOLINT: a matrix is one
      : RowsView(m.data, m.rows, m.columns, m.stride,
                 std::is_same_v<std::remove_const_t<T>, float> ? Precision::kFloat32 : Precision::kBFloat16) {}

  RowsView(Element<float>* first, size_t row_count, size_t column_count)
      : RowsView(first, row_count, column_count, column_count) {}
  RowsView(Element<float>* first, size_t row_count, size_t column_count, size_t row_stride)
      : RowsView(first, row_count, column_count, row_stride, Precision::kFloat32) {}

  bool is_half() const { return precision == Precision::kBFloat16; }
  MatrixView<Element<float>> floats() const {
    CGCN_CHECK(!is_half() || rows == 0);
    return {static_cast<Element<float>*>(data), rows, columns, stride};
  }
  MatrixView<Element<BFloat16>> halves() const {
    CGCN_CHECK(is_half() || rows == 0);
    return {static_cast<Element<BFloat16>*>(data), rows, columns, stride};
  }
  template <class Use>
  auto visit(Use&& use) const {
    return is_half() ? use(halves()) : use(floats());
  }

  RowsView tile(size_t row_begin, size_t row_end, size_t column_begin, size_t column_end) const {
    using Byte = Element<char>;
    Byte* first = static_cast<Byte*>(data) + (row_begin * stride + column_begin) * bytes_of(precision);
    return {first, row_end - row_begin, column_end - column_begin, stride, precision};
  }
  RowsView rows_from(size_t begin, size_t end) const { return tile(begin, end, 0, columns); }
  RowsView columns_from(size_t begin, size_t end) const { return tile(0, rows, begin, end); }
  operator RowsView<const void>() const { return {data, rows, columns, stride, precision}; }
};

using Rows = RowsView<void>;
using ConstRows = RowsView<const void>;

inline Rows padded(void* data, size_t rows, size_t columns, Precision precision) {
  return {data, rows, columns, padded_stride(columns, precision), precision};
}
// What float32 rows are rounded to in place: each begins where it began.
inline HalfMatrix halves_of(Matrix m) {
  return {reinterpret_cast<BFloat16*>(m.data), m.rows, m.columns, m.stride * sizeof(float) / sizeof(BFloat16)};
}

}  // namespace cgcn::kernels
