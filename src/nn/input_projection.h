// A linear layer before the first convolution, which brings the features to the width of the hidden layers.
//
//   z = D(X)·W + b,   H_0 = act(z), or z (norm before)
//
// The first convolution is then one like the others, and no A·X is needed. No gradient is computed for X.
#pragma once

#include "nn/activation.h"
#include "nn/convolution_input.h"
#include "nn/initial_rows.h"
#include "nn/layer.h"
#include "nn/linear.h"
#include "nn/sparse_input.h"

namespace cgcn {

class InputProjection final : public Layer {
 public:
  InputProjection(const LayerShape& shape, const ModelOptions& options, bool sparse, Parameters& parameters);

  void plan(Workspace& workspace, std::span<const size_t> rows) override;
  kernels::Rows place_input(const Step&) const override { return {}; }
  void forward(const Step& step, kernels::Rows below, kernels::Rows out) override;
  kernels::Rows backward(const Step& step, kernels::Rows gradient) override;

  void infer(const InferenceRows& rows, kernels::Rows out) const override;
  size_t packed_elements() const override { return sparse_ ? 0 : linear_.packed_elements(); }
  void pack_weights(BFloat16* packed) const override {
    if (!sparse_) linear_.pack(packed);
  }

  TouchedRows touched_rows() const override;
  void set_touched_rows(std::span<const uint32_t> rows) override { sparse_rows_.set_touched(rows); }
  uint64_t bytes() const override { return sparse_rows_.bytes(); }

  // H_0 for the layers above; null if they take none.
  InitialRows* initial_rows() { return initial_.on() ? &initial_ : nullptr; }

 private:
  bool sparse_;
  ConvolutionInput input_;
  Linear linear_;
  Activation activation_;
  SparseInput sparse_rows_;
  InitialRows initial_;
};

}  // namespace cgcn
