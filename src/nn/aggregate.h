// Aggregation over the edges of a batch, on all threads.
#pragma once

#include <algorithm>

#include "common/sparse_view.h"
#include "kernels/bfloat16.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace cgcn {

// Calls work(rows, columns) for pieces of a matrix, strip of columns by strip, so that what all threads gather from at
// a time is a strip of the source, which stays in the caches. Strips begin at multiples of 64, as masks want it; rows
// are cut as the products cut them.
template <class Work>
void for_strips(size_t rows, size_t columns, Work&& work) {
  constexpr size_t kStrip = 128;
  const kernels::Tiles tiles = kernels::Tiles::of_rows(rows, 1);
  const size_t strips = (columns + kStrip - 1) / kStrip;
  kernels::parallel_tiles(tiles.count() * strips, [&](size_t i) {
    const size_t column = i / tiles.count() * kStrip;
    work(tiles.rows(i % tiles.count()), kernels::RowRange{column, std::min(columns, column + kStrip)});
  });
}

inline kernels::ConstRows columns_of(kernels::ConstRows m, kernels::RowRange columns) {
  return m.rows > 0 ? m.columns_from(columns.begin, columns.end) : m;
}

// out = initial + a·source. No initial: zero.
void aggregate_all(const SparseView& a, kernels::ConstRows source, kernels::ConstRows initial, kernels::Rows out);

}  // namespace cgcn
