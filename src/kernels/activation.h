// What stands between two convolutions: LayerNorm (learnable scale and offset, biased variance, ε = 1e-5), then ReLU,
// then the residual; each forward with its backward. One pass over the rows, statistics kept for the way back.
#pragma once

#include "kernels/matrix.h"

namespace cgcn::kernels {

inline constexpr float kLayerNormEpsilon = 1e-5f;

// Empty scale: no LayerNorm.
struct LayerNorm {
  const float* scale = nullptr;
  const float* offset = nullptr;
  float* mean = nullptr;  // per row, written forward and read backward; both or neither may be null forward
  float* inverse_deviation = nullptr;

  bool on() const { return scale != nullptr; }
};

// out.row(r) = residual.row(r) + max(0, LayerNorm(z.row(r))); no residual if it is empty. out may be z or residual.
void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstMatrix residual, Matrix out);

// From the gradient at the output of ReLU to the one at z, which replaces z. Adds the gradients of scale and offset
// over these rows to scale_gradient and offset_gradient (unused without LayerNorm).
void activate_backward(RowRange rows, ConstMatrix output_gradient, const LayerNorm& norm, Matrix z,
                       float* scale_gradient, float* offset_gradient);

// sums[c] += Σ_r m(r, c): the gradient of a bias.
void add_column_sums(RowRange rows, ConstMatrix m, float* sums);

}  // namespace cgcn::kernels
