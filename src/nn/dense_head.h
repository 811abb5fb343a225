// GraphSAGE's head: the last convolution gives embeddings instead of logits; their rows are brought to length 1, and a
// dense layer makes logits of them. All of it is float32 in either precision.
//
//   y = H / ‖H‖,  logits = y·W + b;   dW = yᵀ·dlogits,  dy = dlogits·Wᵀ,  dH = (dy - y·⟨y, dy⟩) / ‖H‖
#pragma once

#include "nn/layer.h"
#include "nn/parameters.h"

namespace cgcn {

class DenseHead final : public Layer {
 public:
  DenseHead(const LayerShape& shape, Parameters& parameters);

  void plan(Workspace& workspace, std::span<const size_t> rows) override;
  kernels::Rows place_input(const Step& step) const override;
  void forward(const Step& step, kernels::Rows below, kernels::Rows out) override;
  kernels::Rows backward(const Step& step, kernels::Rows gradient) override;

  void infer(const InferenceRows& rows, kernels::Rows out) const override;

 private:
  void apply(kernels::ConstMatrix h, kernels::Matrix y, float* inverse_length, kernels::Matrix logits) const;

  OwnParameter weight_, bias_;
  float *unit_ = nullptr, *inverse_length_ = nullptr;
  Workspace* workspace_ = nullptr;
};

}  // namespace cgcn
