// Layer 1, from the precomputed N(A)·X and X: D([N(A)X, X])·W + b. Dense rows are gathered into one product; sparse
// rows and the identity become a small sparse matrix of the batch, whose products touch only the rows of W that it
// names.
#pragma once

#include "graph/features.h"
#include "nn/convolution.h"

namespace cgcn {

class SparseInput {
 public:
  // The batch's rows of [N(A)X, X] after dropout, as a sparse matrix over the rows of W; and its transpose.
  void gather(const Layer& layer, const Step& step, const FeatureMatrix& x, const FeatureMatrix& aggregated);
  const SparseView& view() const { return view_; }
  // dW rows that the batch named; those of the batch before that it does not name become zero.
  void backward(const Layer& layer, kernels::ConstMatrix z_gradient);
  std::span<const uint32_t> touched() const { return touched_; }
  uint64_t bytes() const;

 private:
  void transpose(size_t fan_in);

  Buffer<uint64_t> offsets_, transposed_offsets_;
  Buffer<uint32_t> columns_, transposed_columns_;
  Buffer<float> values_, transposed_values_;
  Buffer<uint8_t> bits_;
  std::vector<uint32_t> slots_, touched_;  // row of W → place in touched_
  SparseView view_;
};

// Dense features: z and H_1.
void forward_dense_input(const Layer& layer, const Step& step, const FeatureMatrix& x, const FeatureMatrix& aggregated,
                         LayerMemory& memory, kernels::Matrix next);
void backward_dense_input(const Layer& layer, const Step& step, LayerMemory& memory);

// Sparse features.
void forward_sparse_input(const Layer& layer, const Step& step, const SparseInput& input, LayerMemory& memory,
                          kernels::Matrix next);

}  // namespace cgcn
