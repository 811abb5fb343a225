// Layer 1, from the precomputed N(A)·X and X: D([N(A)X, X])·W + b. Dense rows are gathered into one product; sparse
// rows and the identity become a small sparse matrix of the batch, whose products touch only the rows of W that it
// names.
//
// Where the batch has an input block A, layer 1 aggregates X by it: dense rows are a convolution like the others;
// sparse ones are multiplied first, A·(D(X)·W_left) + D(X)·W_right, which has no place for dropout after the
// aggregation.
#pragma once

#include "graph/features.h"
#include "nn/convolution.h"

namespace cgcn {

class SparseInput {
 public:
  // The batch's rows of [N(A)X, X] after dropout, as a sparse matrix over the rows of W; and its transpose. With an
  // input block: the sources' rows of [X, 0] and below them the targets' of [0, X].
  void gather(const Layer& layer, const Step& step, const FeatureMatrix& x, const FeatureMatrix& aggregated);
  const SparseView& view() const { return view_; }
  // The gradients from dz; rows of dW that the batch named, and those of the batch before that it does not name become
  // zero.
  void backward(const Layer& layer, const Step& step, kernels::ConstMatrix z_gradient);
  // With an input block: room for view()·W and then for its gradient.
  kernels::Matrix product(const Layer& layer);
  std::span<const uint32_t> touched() const { return touched_; }
  uint64_t bytes() const;

 private:
  void transpose(size_t fan_in);
  void backward_weight(const Layer& layer, kernels::ConstMatrix gradient);

  Buffer<uint64_t> offsets_, transposed_offsets_;
  Buffer<uint32_t> columns_, transposed_columns_;
  Buffer<float> values_, transposed_values_;
  Buffer<uint8_t> bits_;
  Buffer<float> product_;
  std::vector<uint32_t> slots_, touched_;  // row of W → place in touched_
  SparseView view_;
};

// Dense features: z and H_1.
void forward_dense_input(const Layer& layer, const Step& step, const FeatureMatrix& x, const FeatureMatrix& aggregated,
                         LayerMemory& memory, kernels::Matrix next);
void backward_dense_input(const Layer& layer, const Step& step, LayerMemory& memory);

// The batch's rows of dense features.
void gather_features(const FeatureMatrix& x, const Batch& batch, kernels::Matrix out);

// Sparse features.
void forward_sparse_input(const Layer& layer, const Step& step, SparseInput& input, LayerMemory& memory,
                          kernels::Matrix next);

}  // namespace cgcn
