// Dense products, by tile_product.h or, without AVX2, by OpenBLAS: single-threaded calls on tiles that depend on the
// shape alone, so that the result is the same for any number of threads. A call runs on the calling thread; the
// caller spreads tiles over threads.
#pragma once

#include <cstddef>

#include "kernels/matrix.h"

namespace cgcn::kernels {

// C = A·B + keep·C, C = A·Bᵀ + keep·C, C = Aᵀ·B + keep·C. keep is 0 (C need not be initialised) or 1.
void multiply(ConstMatrix a, ConstMatrix b, Matrix c, float keep = 0);
void multiply_and_add(ConstMatrix a, ConstMatrix b, const float* bias, Matrix c);  // bias: to every row of A·B
void multiply_transposed(ConstMatrix a, ConstMatrix b_transposed, Matrix c, float keep = 0);
void multiply_by_transpose_of(ConstMatrix a_transposed, ConstMatrix b, Matrix c, float keep = 0);

// [0, n) cut into `count` nearly equal ranges; all but the last begin and end at a multiple of a unit: OpenBLAS's 16.
class Cut {
 public:
  Cut(size_t n, size_t count, size_t unit = 16)
      : n_(n), unit_(unit), units_((n + unit - 1) / unit), count_(count < units_ ? count : units_) {}
  size_t count() const { return count_; }
  RowRange operator[](size_t i) const { return {bound(i), bound(i + 1)}; }

 private:
  size_t bound(size_t i) const {
    const size_t at = units_ * i / count_ * unit_;
    return at < n_ ? at : n_;
  }
  size_t n_, unit_, units_, count_;
};

// Whether a row of a product has the same bits whatever the other rows are and wherever it stands among them.
bool rows_are_independent();

// How a product is cut into tiles of its result, one call each. Tiles of about 512 × 256 keep OpenBLAS within 3 % of
// its best, and an even number of rows' tiles keeps two threads equally busy.
class Tiles {
 public:
  // Columns are cut at multiples of a unit.
  static Tiles of_rows(size_t rows, size_t columns, size_t unit = 16);     // rows of nodes
  static Tiles of_weights(size_t rows, size_t columns, size_t unit = 16);  // a weight's gradient: sums over the nodes
  size_t count() const { return rows_.count() * columns_.count(); }
  RowRange rows(size_t i) const { return rows_[i % rows_.count()]; }
  RowRange columns(size_t i) const { return columns_[i / rows_.count()]; }

 private:
  Tiles(Cut rows, Cut columns) : rows_(rows), columns_(columns) {}
  Cut rows_, columns_;
};

}  // namespace cgcn::kernels
