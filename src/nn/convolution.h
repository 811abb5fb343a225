// A convolution on the rows of the layer below.
//
//   h = H_{l-1}, or act(H_{l-1}) if the norm comes before;   z = D([N(A)·h, h])·W + b
//   H_l = z (last layer),  act(z) [+ h] (norm after),  z [+ H_{l-1}] (norm before)
//
// GCNII's hidden layers (Chen et al., 2020) have (1-α)·N(A)·h + α·H_0 in the place of N(A)·h, initial_rows.h, and
// z = β·(C·W + b) + (1-β)·C_left with β = log(λ/l + 1);   dC_left = β·dz·W_leftᵀ + (1-β)·dz.
//
// Aggregate first:  C = D([A·h, h]),  z = C·W + b
//   dW = Cᵀ·dz,  dC = D(dz·Wᵀ),  dh = Aᵀ·dC_left + dC_right
// Project first (the last layer, if nothing is dropped and that is cheaper):  P = h·W_left,  z = A·P + h·W_right + b
//   dP = Aᵀ·dz,  dW = [hᵀ·dP; hᵀ·dz],  dh = dP·W_leftᵀ + dz·W_rightᵀ
// In a step float32 alone projects first: rows in bfloat16 cost half as much to aggregate. Inference does in either
// precision, with P and h·W_right + b in float32.
#pragma once

#include "kernels/row_buffer.h"
#include "nn/activation.h"
#include "nn/convolution_input.h"
#include "nn/initial_rows.h"
#include "nn/layer.h"
#include "nn/linear.h"

namespace cgcn {

class Convolution final : public Layer {
 public:
  // initial: H_0; null if it takes none.
  Convolution(const LayerShape& shape, const ModelOptions& options, InitialRows* initial, Parameters& parameters);

  void plan(Workspace& workspace, std::span<const size_t> rows) override;
  kernels::Rows place_input(const Step& step) const override;
  void forward(const Step& step, kernels::Rows below, kernels::Rows out) override;
  kernels::Rows backward(const Step& step, kernels::Rows gradient) override;

  Messages messages() const override;
  size_t message_columns() const override { return may_project_first() ? out() : in(); }
  size_t kept_columns() const override { return message_columns(); }
  void message(kernels::ConstRows own, const BFloat16* packed, kernels::Rows messages,
               kernels::Rows kept) const override;
  void infer(const InferenceRows& rows, kernels::Rows out) const override;
  size_t packed_elements() const override;
  void pack_weights(BFloat16* packed) const override;

 private:
  bool may_project_first() const { return last_ && out() < in(); }
  bool projects_first(const Step& step) const;
  bool norm_after() const { return activation_.on() && !norm_before_; }
  bool maps_identity() const { return identity_ < 1; }
  // What forward, message and infer share: h where it is not the input itself, and H_l of z.
  kernels::ConstRows activate_own(kernels::ConstRows below, kernels::RowBuffer& memory) const;
  void finish(const Step* step, kernels::ConstRows left, kernels::ConstRows below, kernels::Matrix z,
              kernels::Rows out) const;
  void project(kernels::ConstRows h, const BFloat16* packed, kernels::Matrix messages, kernels::Matrix kept) const;
  void infer_product(kernels::ConstRows left, kernels::ConstRows own, const BFloat16* packed, kernels::Matrix z) const;
  size_t packed_part() const { return kernels::PackedMatrix::elements(in(), out()); }
  void add_identity(kernels::ConstRows left, kernels::Matrix z) const;
  kernels::ConstMatrix left_weight() const { return linear_.weight().rows_from(0, in()); }
  kernels::ConstMatrix right_weight() const { return linear_.weight().rows_from(in(), linear_.in()); }
  kernels::Rows place_sources(const Step& step) const;  // h
  kernels::ConstMatrix constant_term(const Step& step, kernels::ConstRows h) const;
  void project_and_aggregate(const SparseView& a, kernels::ConstMatrix h, kernels::Matrix z) const;
  void backward_products(const Step& step, kernels::ConstRows dz, kernels::ConstRows past,
                         kernels::Rows input_gradient) const;
  void backward_aggregate_first(const Step& step, kernels::ConstRows dz, kernels::ConstRows past,
                                kernels::Rows dh) const;
  void backward_project_first(const Step& step, kernels::ConstMatrix dz, kernels::Matrix dh) const;

  bool last_, norm_before_, residual_;
  float identity_ = 1;              // β; 1: W alone
  InitialRows* initial_ = nullptr;  // of the hidden layers
  ConvolutionInput input_;
  Linear linear_;
  Activation activation_;
  Workspace* workspace_ = nullptr;
  bool projected_first_ = false;  // in the last forward pass
};

}  // namespace cgcn
