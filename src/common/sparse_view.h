// A sparse matrix as the kernels see it: rows of (column, value), owned by somebody else.
#pragma once

#include <cstdint>

namespace cgcn {

struct SparseView {
  uint32_t rows = 0, columns = 0;
  const uint64_t* offsets = nullptr;         // rows + 1; row r is entries offsets[r] … offsets[r + 1)
  const uint32_t* column_indices = nullptr;  // need not rise within a row
  const float* values = nullptr;

  uint64_t num_entries() const { return rows == 0 ? 0 : offsets[rows] - offsets[0]; }
};

}  // namespace cgcn
