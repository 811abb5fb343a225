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
void for_strips(const kernels::Rows& out, Work&& work) {
  constexpr size_t kStripBytes = 512;
  const kernels::Tiles tiles = kernels::Tiles::of_rows(out.rows, 1);
  const size_t strip = kStripBytes / kernels::bytes_of(out.precision);
  const kernels::Cut strips(out.columns, (out.columns + strip - 1) / strip, 64);
  kernels::parallel_tiles(tiles.count() * strips.count(),
                          [&](size_t i) { work(tiles.rows(i % tiles.count()), strips[i / tiles.count()]); });
}

inline kernels::ConstRows columns_of(kernels::ConstRows m, kernels::RowRange columns) {
  return m.rows > 0 ? m.columns_from(columns.begin, columns.end) : m;
}

// out = initial + a·source. No initial: zero.
void aggregate_all(const SparseView& a, kernels::ConstRows source, kernels::ConstRows initial, kernels::Rows out);

}  // namespace cgcn
