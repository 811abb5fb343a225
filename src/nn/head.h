// GraphSAGE's head: the last convolution gives an embedding z instead of logits; its rows are brought to length 1, and
// a dense layer makes logits of them.
//
//   y = z / ‖z‖,  logits = y·W + b;   dW = yᵀ·dlogits,  dy = dlogits·Wᵀ,  dz = (dy - y·⟨y, dy⟩) / ‖z‖
#pragma once

#include "kernels/matrix.h"
#include "nn/layer.h"

namespace cgcn {

class Head {
 public:
  bool on() const { return weight_.data != nullptr; }

  // Before and after Parameters::allocate().
  void add_parameters(const Layer& last, const ModelShape& shape, Parameters& parameters);
  void initialise(Parameters& parameters, uint64_t seed);
  void place(Workspace& workspace, size_t rows);

  // z: rows of the last convolution. Returns the logits, which the loss replaces by their gradient.
  kernels::Matrix forward(kernels::ConstMatrix z);
  // From the gradient at the logits to the parameters' and to dz, which replaces z.
  void backward(kernels::Matrix z);
  // Logits of packed rows, for inference. z is overwritten.
  void infer(kernels::Matrix z, float* logits) const;

 private:
  void multiply_rows(kernels::ConstMatrix y, kernels::Matrix logits, kernels::RowRange rows) const;

  size_t weight_index_ = 0, bias_index_ = 0;
  kernels::Matrix weight_, weight_gradient_;
  float *bias_ = nullptr, *bias_gradient_ = nullptr;
  float *unit_ = nullptr, *inverse_length_ = nullptr, *logits_ = nullptr;
};

}  // namespace cgcn
