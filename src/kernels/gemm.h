// Dense products through OpenBLAS: single-threaded calls on blocks that depend on the shape alone, so that the result
// is the same for any number of threads. A block call runs on the calling thread; the caller spreads blocks over
// threads.
#pragma once

#include <cstddef>

#include "kernels/matrix.h"

namespace cgcn::kernels {

// C = A·B + keep·C, C = A·Bᵀ + keep·C, C = Aᵀ·B + keep·C. keep is 0 (C need not be initialised) or 1.
void multiply(ConstMatrix a, ConstMatrix b, Matrix c, float keep = 0);
void multiply_transposed(ConstMatrix a, ConstMatrix b_transposed, Matrix c, float keep = 0);
void multiply_by_transpose_of(ConstMatrix a_transposed, ConstMatrix b, Matrix c, float keep = 0);

// n rows cut into an even number of nearly equal ranges of about 256, each but the last a multiple of OpenBLAS's 16.
class RowBlocks {
 public:
  explicit RowBlocks(size_t n);
  size_t count() const { return count_; }
  RowRange operator[](size_t i) const;

 private:
  static constexpr size_t kUnit = 16, kTarget = 256;
  size_t n_, units_, count_;
};

}  // namespace cgcn::kernels
