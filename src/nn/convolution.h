// A convolution on the rows of the layer below.
//
//   h = H_{l-1}, or act(H_{l-1}) if the norm comes before;   z = D([N(A)·h, h])·W + b
//   H_l = z (last layer),  act(z) [+ h] (norm after),  z [+ H_{l-1}] (norm before)
//
// Aggregate first:  C = D([A·h, h]),  z = C·W + b
//   dW = Cᵀ·dz,  dC = D(dz·Wᵀ),  dh = Aᵀ·dC_left + dC_right
// Project first (if nothing is dropped and that is cheaper):  P = h·W_left,  z = A·P + h·W_right + b
//   dP = Aᵀ·dz,  dW = [hᵀ·dP; hᵀ·dz],  dh = dP·W_leftᵀ + dz·W_rightᵀ
#pragma once

#include "nn/activation.h"
#include "nn/convolution_input.h"
#include "nn/layer.h"
#include "nn/linear.h"

namespace cgcn {

class Convolution final : public Layer {
 public:
  Convolution(const LayerShape& shape, const ModelOptions& options, Parameters& parameters);

  void plan(Workspace& workspace, std::span<const size_t> rows) override;
  kernels::Matrix place_input(const Step& step) const override;
  void forward(const Step& step, kernels::Matrix below, kernels::Matrix out) override;
  kernels::Matrix backward(const Step& step, kernels::Matrix gradient) override;

  Messages messages() const override;
  size_t message_columns() const override { return may_project_first() ? out() : in(); }
  void message(kernels::ConstMatrix own, kernels::Matrix out) const override;
  void infer(const InferenceRows& rows, kernels::Matrix out) const override;

 private:
  bool may_project_first() const { return out() < in(); }
  bool projects_first(const Step& step) const;
  bool norm_after() const { return activation_.on() && !norm_before_; }
  kernels::ConstMatrix left_weight() const { return linear_.weight().rows_from(0, in()); }
  kernels::ConstMatrix right_weight() const { return linear_.weight().rows_from(in(), linear_.in()); }
  kernels::Matrix place_sources(const Step& step) const;  // h
  kernels::ConstMatrix constant_term(const Step& step, kernels::ConstMatrix h) const;
  void project_and_aggregate(const SparseView& a, kernels::ConstMatrix h, kernels::Matrix z) const;
  void backward_products(const Step& step, kernels::ConstMatrix dz, kernels::ConstMatrix past,
                         kernels::Matrix input_gradient) const;
  void backward_aggregate_first(const Step& step, kernels::ConstMatrix dz, kernels::ConstMatrix past,
                                kernels::Matrix dh) const;
  void backward_project_first(const Step& step, kernels::ConstMatrix dz, kernels::ConstMatrix past,
                              kernels::Matrix dh) const;

  bool last_, norm_before_, residual_;
  ConvolutionInput input_;
  Linear linear_;
  Activation activation_;
  Workspace* workspace_ = nullptr;
  bool projected_first_ = false;  // in the last forward pass
};

}  // namespace cgcn
