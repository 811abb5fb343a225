// The first convolution, on the features.
//
//   z = D([N(A)·X, X])·W + b,   H_1 = act(z), or z (last layer, or norm before)
//
// It takes the precomputed N(A)·X. Dense rows are gathered into one product; sparse rows and the identity become a
// small sparse matrix of the batch (sparse_input.h). If the batch has an input adjacency A, the layer aggregates X
// by it: dense rows as every convolution does; sparse ones are multiplied first, A·(D(X)·W_left) + D(X)·W_right, which
// has no place for dropout after the aggregation. No gradient is computed for X. Products of sparse rows are float32 in
// either precision.
#pragma once

#include "nn/activation.h"
#include "nn/convolution_input.h"
#include "nn/layer.h"
#include "nn/linear.h"
#include "nn/sparse_input.h"

namespace cgcn {

class InputLayer final : public Layer {
 public:
  InputLayer(const LayerShape& shape, const ModelOptions& options, bool sparse, Parameters& parameters);

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
  uint64_t bytes() const override;

 private:
  void forward_dense(const Step& step, kernels::Matrix z);
  void forward_sparse(const Step& step, kernels::Matrix z);
  kernels::Matrix sparse_product();
  void backward_sparse(const Step& step, kernels::ConstRows dz);

  bool sparse_;
  ConvolutionInput input_;
  Linear linear_;
  Activation activation_;
  SparseInput sparse_rows_;
  Workspace* workspace_ = nullptr;
  Buffer<char> sources_;  // if the batch has an input adjacency: rows of X; if sparse, of their product with W, float32
};

}  // namespace cgcn
