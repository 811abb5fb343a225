// Loops over tiles and rows of a matrix on all threads. From one loop to the next a thread meets the rows that are in
// its own cache; what a tile computes never depends on the thread. An exception thrown by a tile is rethrown here after
// the others have finished.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/threads.h"
#include "kernels/gemm.h"
#include "kernels/matrix.h"

namespace cgcn::kernels {

// work(i) for i in [0, count): tile i on thread i mod threads.
template <class Work>
void parallel_tiles(size_t count, Work&& work) {
  parallel_for_each_block(count, BlockOrder::kInterleaved, work);
}

// work(rows, first column, tile) for the tiles of a product of rows of nodes.
template <class Work>
void parallel_product(Matrix product, Work&& work) {
  const Tiles tiles = Tiles::of_rows(product.rows, product.columns);
  parallel_tiles(tiles.count(), [&](size_t i) {
    const RowRange rows = tiles.rows(i), columns = tiles.columns(i);
    work(rows, columns.begin, product.tile(rows.begin, rows.end, columns.begin, columns.end));
  });
}

// work(rows) for blocks of rows; neighbouring blocks on the same thread.
template <class Work>
void parallel_rows(size_t rows, size_t block, Work&& work) {
  parallel_for_each_block((rows + block - 1) / block, BlockOrder::kNeighbours, [&](size_t i) {
    const size_t begin = i * block;
    work(RowRange{begin, std::min(rows, begin + block)});
  });
}

}  // namespace cgcn::kernels
