// What stands between two products, a part of layers: LayerNorm (optional), then ReLU, then the residual. Keeps z and
// the rows' statistics for the way back.
#pragma once

#include <string>

#include "kernels/activation.h"
#include "nn/parameters.h"
#include "nn/workspace.h"

namespace cgcn {

class Activation {
 public:
  Activation() = default;  // nothing stands there
  Activation(const std::string& layer, size_t columns, bool layer_norm, Parameters& parameters);
  bool on() const { return columns_ > 0; }

  void plan(Workspace& workspace, size_t rows);
  // Where z belongs.
  kernels::Matrix input(size_t rows) const { return kernels::padded(z_, rows, columns_); }
  // out = act(z) [+ residual]
  void forward(kernels::ConstMatrix residual, kernels::Matrix out) const;
  // From the gradient at the output to the one at z, which takes z's place, and those of the norm.
  kernels::Matrix backward(kernels::ConstMatrix output_gradient) const;
  // Without memory. out may be z.
  void infer(kernels::ConstMatrix z, kernels::ConstMatrix residual, kernels::Matrix out) const;

 private:
  kernels::LayerNorm norm(float* mean, float* inverse_deviation) const {
    return {scale_.value().data, offset_.value().data, mean, inverse_deviation};
  }

  size_t columns_ = 0;
  OwnParameter scale_, offset_;
  float *z_ = nullptr, *mean_ = nullptr, *inverse_deviation_ = nullptr;
  Workspace* workspace_ = nullptr;
};

}  // namespace cgcn
