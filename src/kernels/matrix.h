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
  operator MatrixView<const T>() const { return {data, rows, columns, stride}; }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

// Rows begin … end of whatever a kernel works on: kernels run on one thread, callers cut the rows.
struct RowRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

}  // namespace cgcn::kernels
