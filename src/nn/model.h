// The network: L graph convolutions (paper eq. 1, or the released code's concatenated form), forward and backward.
//
//   layer l < L:   H_l = ReLU(LayerNorm(D([N(A)·H_{l-1}, H_{l-1}])·W_l + b_l))  [+ H_{l-1}, paper eq. 8]
//   layer L:       logits = D([N(A)·H_{L-1}, H_{L-1}])·W_L + b_L
//
// D is inverted dropout on the concatenated input, after aggregation, as in the released code; without concatenation
// only N(A)·H remains. Or D is applied to H_{l-1} before it is aggregated (Kipf and Welling). Layer 1 takes N(A)·X
// precomputed, and drops parts of that, unless the batch has an input block; no gradient is computed for X. The
// residual joins hidden layers of equal width (2 … L-1) and takes H before dropout after aggregation, after dropout
// before it. With a dense head the last convolution gives an embedding, and head.h the logits. Where nothing is
// dropped, a layer multiplies before it aggregates if that is cheaper. Results do not depend on the number of threads,
// bit for bit.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch/batch.h"
#include "graph/dataset.h"
#include "nn/model_options.h"
#include "nn/parameters.h"

namespace cgcn {

class EmbeddingHistory;

// The layout's arrays, all in the same row order: Batch::inputs are rows of these.
struct ModelInput {
  const FeatureMatrix& x;           // may be empty (no rows) in the plain form, which does not use it
  const FeatureMatrix& aggregated;  // N(A)·X; sparse where X is sparse or the identity
  const Labels& labels;
  EmbeddingHistory* history = nullptr;  // for batches with remainders; a step brings it up to date
};

struct StepResult {
  double loss = 0;        // mean over the labelled rows (and classes, where there are several a node)
  uint32_t labelled = 0;  // rows that counted; where 0, the gradient is zero
};

// Which rows of a parameter have a gradient that may differ from zero.
struct TouchedRows {
  bool all = true;
  std::span<const uint32_t> rows;  // rising; where not all
};

class Model {
 public:
  // Throws Error where options and shape do not fit together. Weights are Glorot uniform from the seed.
  Model(const ModelOptions& options, const ModelShape& shape, uint64_t seed);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  const ModelOptions& options() const;
  const ModelShape& shape() const;
  uint32_t num_layers() const { return options().layers; }
  uint32_t layer_width(uint32_t layer) const;  // columns of H_l; layer 1 … L, the last is the number of classes

  const std::vector<Parameter>& parameters() const;
  std::span<float> values();
  std::span<const float> values() const;
  std::span<float> gradients();
  std::span<const float> gradients() const;
  TouchedRows touched_rows(size_t parameter) const;  // by the last compute_gradients
  uint64_t num_weights() const;                      // without padding

  // Training. reserve() sizes the workspace for all batches within the limits; nothing is allocated after it. A batch
  // that is larger than any before makes it grow.
  void reserve(const BatchLimits& limits);
  uint64_t workspace_bytes() const;
  // One forward and backward pass; overwrites gradients(). The dropout masks are a function of the seed and of the
  // batch's epoch and index.
  StepResult compute_gradients(const Batch& batch, const ModelInput& input, uint64_t seed);
  // Forward without dropout: num_outputs × num_classes logits. For evaluation on batches (not exact on the whole
  // graph).
  void predict(const Batch& batch, const ModelInput& input, float* logits);

  // Exact inference, layer by layer, on row blocks that the caller chooses; no dropout. Rows are packed.
  // H_1 (logits where L = 1) of rows begin … end of the features.
  void infer_first_layer(const FeatureMatrix& x, const FeatureMatrix& aggregated, NodeId begin, NodeId end,
                         float* out) const;
  // H_l (logits at l = L) from rows of N(A)·H_{l-1} and the same rows of H_{l-1}.
  void infer_layer(uint32_t layer, const float* aggregated, const float* own, size_t rows, float* out) const;

  // The same with the product first, (A·H)·W = A·(H·W), for layers that are narrower than their input:
  // project() gives rows of H·W_aggregated, and of H·W_own + b where concatenated (else of b alone); then
  // z = own_part + N(A)·projected; then finish_layer(z) in place. own: rows of H_{l-1}.
  bool projects_first(uint32_t layer) const;
  void project(uint32_t layer, const float* own, size_t rows, float* projected, float* own_part) const;
  void finish_layer(uint32_t layer, const float* own, size_t rows, float* z) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cgcn
