// A row-major matrix of floats as the kernels see it: owned by somebody else, rows a stride apart.
#pragma once

#include <cstddef>

namespace cgcn::kernels {

template <class T>
struct MatrixView {
  T* data = nullptr;
  size_t rows = 0, columns = 0, stride = 0;

  MatrixView() = default;
  MatrixView(T* first, size_t row_count, size_t column_count)
      : MatrixView(first, row_count, column_count, column_count) {}
  MatrixView(T* first, size_t row_count, size_t column_count, size_t row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {}

  T* row(size_t r) const { return data + r * stride; }
  MatrixView rows_from(size_t begin, size_t end) const { return {row(begin), end - begin, columns, stride}; }
  MatrixView columns_from(size_t begin, size_t end) const { return {data + begin, rows, end - begin, stride}; }
  MatrixView tile(size_t row_begin, size_t row_end, size_t column_begin, size_t column_end) const {
    return {row(row_begin) + column_begin, row_end - row_begin, column_end - column_begin, stride};
  }
  operator MatrixView<const T>() const { return {data, rows, columns, stride}; }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

// An odd number of cache lines: rows that lie a power of two apart would all fall into the same few sets of a cache.
inline size_t padded_stride(size_t columns) {
  constexpr size_t kLine = 16;
  return ((columns + kLine - 1) / kLine | 1) * kLine;
}
inline Matrix padded(float* data, size_t rows, size_t columns) { return {data, rows, columns, padded_stride(columns)}; }

// Begin … end of the rows (or columns) that a kernel works on: kernels run on one thread, callers cut.
struct RowRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

}  // namespace cgcn::kernels
