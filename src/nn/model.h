// The network: L graph convolutions (paper eq. 1, or the released code's concatenated form), forward and backward.
//
//   layer l < L:   H_l = ReLU(LayerNorm(D([N(A)·H_{l-1}, H_{l-1}])·W_l + b_l))  [+ H_{l-1}, paper eq. 8]
//   layer L:       logits = D([N(A)·H_{L-1}, H_{L-1}])·W_L + b_L
//
// D is inverted dropout on the concatenated input, after aggregation, as in the released code; without concatenation
// only N(A)·H remains. Or D is applied to H_{l-1} before it is aggregated (Kipf and Welling). Layer 1 takes N(A)·X
// precomputed, and drops values of that, unless the batch has an input adjacency; no gradient is computed for X. The
// residual joins hidden layers of equal width (2 … L-1) and takes H before dropout after aggregation, after dropout
// before it.
//
// With a norm before, H_l = D([N(A)·h, h])·W_l + b_l [+ H_{l-1}] with h = ReLU(LayerNorm(H_{l-1})), and layer 1 takes X
// as it is. With an input projection H_0 = ReLU(LayerNorm(D(X)·W_0 + b_0)) takes the place of X, and layer 1 is one
// like the others. With a dense head the last convolution gives an embedding, and dense_head.h the logits; with a
// linear one it is a hidden layer like those below it. BatchNorm, jumping knowledge and GCNII's layers are in
// activation.h, linear_head.h and convolution.h.
//
// The layers themselves are in layer.h and the files that it names. Results do not depend on the number of threads, bit
// for bit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nn/inference_stage.h"
#include "nn/loss.h"
#include "nn/model_options.h"
#include "nn/parameters.h"
#include "nn/step.h"

namespace cgcn {

struct StepResult {
  double loss = 0;        // mean over the labelled rows (and classes, if a node may have several)
  uint32_t labelled = 0;  // rows that counted; if 0, the gradient is zero
};

// One batch of several in a step.
struct GradientPass {
  LossScale scale = LossScale::kMean;
  // Called when the gradients of range i of gradient_ranges() are there, while those before them are still to come.
  std::function<void(size_t)> on_ready = {};
};

class Model {
 public:
  // Throws Error if options and shape do not fit together. Weights are Glorot uniform from the seed.
  Model(const ModelOptions& options, const ModelShape& shape, uint64_t seed);
  // Without weights and workspace: says what such a model would take, and computes nothing.
  static Model planned(const ModelOptions& options, const ModelShape& shape);
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
  // As if the last compute_gradients had touched these rows of parameter 0, if it touched some.
  void set_touched_rows(std::span<const uint32_t> rows);
  // Where the layers' gradients lie in gradients(), in the order in which backward computes them: the last layer's
  // first.
  std::vector<std::pair<uint64_t, uint64_t>> gradient_ranges() const;
  void set_regression(RegressionLoss kind, const TargetScaling& target);
  void weigh_classes(std::vector<float> weights);  // in the loss; see Loss
  uint64_t num_weights() const;                    // without padding and statistics
  uint64_t value_bytes() const;                    // with padding, as values() has them; also of a planned model

  // Training. reserve() sizes the workspace for all batches within the limits; nothing is allocated after it. A batch
  // that is larger than any before makes it grow.
  void reserve(const BatchLimits& limits);
  uint64_t workspace_bytes() const;  // with what the threads keep for products in bfloat16
  // What sparse input takes in addition, in batches of so many rows and entries of the features; 0 if it is dense.
  uint64_t sparse_input_bytes(uint64_t rows, uint64_t entries) const;
  // One forward and backward pass; overwrites gradients(). The dropout masks are a function of the seed and of the
  // batch's epoch and index.
  StepResult compute_gradients(const Batch& batch, const ModelInput& input, uint64_t seed,
                               const GradientPass& pass = {});
  // After a step: running statistics of BatchNorm move towards the mean of those that its batches measured.
  void move_statistics(uint32_t batches);
  // Forward without dropout: num_outputs × num_classes logits. For evaluation on batches (not exact on the whole
  // graph).
  void predict(const Batch& batch, const ModelInput& input, float* logits);

  // Exact inference in the model's precision, stage by stage, on rows that the caller chooses; no dropout.
  std::vector<InferenceStage> stages() const;

 private:
  struct Network;
  explicit Model(std::unique_ptr<Network> network);
  std::unique_ptr<Network> network_;
};

}  // namespace cgcn
