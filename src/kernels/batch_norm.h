// BatchNorm with ReLU behind it: statistics of a column over the rows of a batch (biased variance, ε = 1e-5), forward
// with its backward. Sums over rows are per block of rows; callers add the blocks up in order. z and the statistics are
// float32; the rows before and behind may be bfloat16.
#pragma once

#include "kernels/bfloat16.h"

namespace cgcn::kernels {

inline constexpr float kBatchNormEpsilon = 1e-5f;

// What the columns are normalised by: x̂ = (z - mean)·inverse_deviation, y = x̂·scale + offset.
struct BatchNorm {
  const float *mean, *inverse_deviation, *scale, *offset;
};

// sums[c] += Σ_r (m(r, c) - mean[c])²
void add_column_squares(RowRange rows, ConstMatrix m, const float* mean, float* sums);

// out.row(r) = residual.row(r) + max(0, y.row(r)); no residual if it is empty. out may be z or residual,
// and has the residual's precision.
void normalise_columns(RowRange rows, ConstMatrix z, const BatchNorm& norm, ConstRows residual, Rows out);

// With g the gradient that ReLU lets through: offset_gradient[c] += Σ_r g, scale_gradient[c] += Σ_r g·x̂.
void add_norm_gradients(RowRange rows, ConstRows output_gradient, const BatchNorm& norm, ConstMatrix z,
                        float* scale_gradient, float* offset_gradient);

// dz = (g - offset_gradient / n - x̂·scale_gradient / n)·scale·inverse_deviation, n the rows of the batch, the gradients
// those of all of them. Of the output gradient's precision; a row of dz may begin where that of z begins.
void normalise_columns_backward(RowRange rows, ConstRows output_gradient, const BatchNorm& norm,
                                const float* scale_gradient, const float* offset_gradient, ConstMatrix z, Rows dz);

}  // namespace cgcn::kernels
