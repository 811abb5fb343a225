// What stands between two convolutions: LayerNorm (learnable scale and offset, biased variance, ε = 1e-5), then ReLU,
// then the residual; each forward with its backward. One pass over the rows, statistics kept for the way back. z and
// the statistics are float32; the rows before and behind may be bfloat16.
#pragma once

#include "kernels/bfloat16.h"

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

// out.row(r) = residual.row(r) + max(0, LayerNorm(z.row(r))); no residual if it is empty. out may be z or residual,
// and has the residual's precision.
void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstRows residual, Rows out);

// From the gradient at the output of ReLU to the one at z, of the same precision; a row of dz may begin where that of z
// begins. Adds the gradients of scale and offset over these rows to scale_gradient and offset_gradient (unused without
// LayerNorm).
void activate_backward(RowRange rows, ConstRows output_gradient, const LayerNorm& norm, ConstMatrix z, Rows dz,
                       float* scale_gradient, float* offset_gradient);

// sums[c] += Σ_r m(r, c): the gradient of a bias.
void add_column_sums(RowRange rows, ConstRows m, float* sums);

}  // namespace cgcn::kernels
