// A linear layer behind the hidden ones, which gives the logits; on the last layer's rows or on those of all layers
// (jumping knowledge, Xu et al., 2018).
//
//   C = H_L,  [H_1, …, H_L]  or  max_l H_l;   logits = D(C)·W + b
//   dW = D(C)ᵀ·dlogits,  dC = D(dlogits·Wᵀ);   dH_l: its columns of dC, or dC if H_l is the largest (the first of
//   equals)
//
// Inference does not keep the rows of all layers: [H_1, …, H_l]·W is added up as they come, or their maximum is kept;
// in float32, whatever the precision of the rows.
#pragma once

#include "kernels/dropout.h"
#include "nn/layer.h"
#include "nn/linear.h"
#include "nn/model_options.h"

namespace cgcn {

class LinearHead final : public Layer {
 public:
  LinearHead(const LayerShape& shape, const ModelOptions& options, Parameters& parameters);

  void plan(Workspace& workspace, std::span<const size_t> rows) override;
  kernels::Rows place_input(const Step& step) const override;
  void take_rows(const Step& step, uint32_t layer, kernels::ConstRows rows) override;
  void forward(const Step& step, kernels::Rows below, kernels::Rows out) override;
  kernels::Rows backward(const Step& step, kernels::Rows gradient) override;
  void add_gradient(uint32_t layer, kernels::Rows gradient) const override;

  size_t carried_columns() const override;
  void carry(uint32_t layer, kernels::ConstRows h, kernels::ConstMatrix before, kernels::Matrix after) const override;
  void infer(const InferenceRows& rows, kernels::Rows out) const override;

 private:
  kernels::DropoutMask mask(const Step& step) const;
  void drop(const Step& step, kernels::Rows c, bool draws) const;
  void carry_floats(uint32_t layer, kernels::ConstMatrix h, kernels::ConstMatrix before, kernels::Matrix after) const;
  void multiply_rows(uint32_t layer, kernels::ConstMatrix h, kernels::ConstMatrix before, kernels::Matrix out) const;
  template <class T>
  void take_rows(uint32_t layer, kernels::MatrixView<const T> h, kernels::MatrixView<T> c) const;
  template <class T>
  void add_gradient(uint32_t layer, kernels::MatrixView<const T> dc, kernels::MatrixView<T> gradient) const;
  uint8_t* largest(size_t row) const { return largest_ + row * in(); }

  Jumping jumping_;
  bool drops_;
  Linear linear_;
  size_t outputs_ = 0;          // rows of the last pass
  uint8_t* bits_ = nullptr;     // of the dropout mask
  uint8_t* largest_ = nullptr;  // which layer's value is in C
  Workspace* workspace_ = nullptr;
};

}  // namespace cgcn
