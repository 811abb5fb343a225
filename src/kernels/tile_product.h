// Products of tiles by AVX-512 or AVX2 code of our own. For every tile OpenBLAS copies both factors and clears the
// result first, a seventh of a step's time. Here the left factor is read where it lies, and of the right one some
// panels at a time are copied, which stay in the cache while all rows meet them. A left factor that is mostly zeros, as
// rows after ReLU are, is multiplied by lists of its other terms. Measured in docs/performance.md.
#pragma once

#include <cstddef>

#include "kernels/matrix.h"

namespace cgcn::kernels {

enum class TileProduct { kPlain, kRightTransposed, kLeftTransposed };  // A·B, A·Bᵀ, Aᵀ·B

// C = product + keep·C; keep is 0 or 1. bias: if keep is 0, a row that is added to each of the product. False, and
// nothing is done, without AVX2: OpenBLAS is taken.
bool multiply_tile(TileProduct kind, ConstMatrix a, ConstMatrix b, Matrix c, float keep, const float* bias = nullptr);

}  // namespace cgcn::kernels
