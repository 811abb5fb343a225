// The transpose of an adjacency, for the way back.
#pragma once

#include <algorithm>
#include <numeric>

#include "common/sparse_view.h"

namespace cgcn {

// Into the arrays given: from.columns + 1 offsets, and as many columns and values as there are entries. Columns rise
// within a row.
inline SparseView transpose(const SparseView& from, uint64_t* offsets, uint32_t* columns, float* values) {
  const uint32_t n = from.columns;
  std::fill_n(offsets, size_t{n} + 1, uint64_t{0});
  // Counted two places ahead, so that filling moves every offset to where it belongs.
  for (uint64_t e = 0; e < from.num_entries(); ++e)
    if (from.column_indices[e] + 2 <= n) ++offsets[from.column_indices[e] + 2];
  std::partial_sum(offsets, offsets + n + 1, offsets);
  for (uint32_t i = 0; i < from.rows; ++i)
    for (uint64_t e = from.offsets[i]; e < from.offsets[size_t{i} + 1]; ++e) {
      const uint64_t slot = offsets[size_t{from.column_indices[e]} + 1]++;
      columns[slot] = i;
      values[slot] = from.values[e];
    }
  return {n, from.rows, offsets, columns, values};
}

}  // namespace cgcn
