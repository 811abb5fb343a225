// What a forward and backward pass works on: the batch, the arrays behind it, and what is random about it.
#pragma once

#include <cstdint>

#include "graph/batch.h"
#include "kernels/dropout.h"

namespace cgcn {

class EmbeddingHistory;

// The layout's arrays, all in the same row order: Batch::inputs are rows of these.
struct ModelInput {
  const FeatureMatrix& x;           // may be empty (no rows) in the plain form, which does not use it
  const FeatureMatrix& aggregated;  // N(A)·X; sparse if X is sparse or the identity
  const Labels& labels;
  EmbeddingHistory* history = nullptr;  // for batches with remainders; a step brings it up to date
};

// What a pass does about the constant terms of remainders: takes those that are there; computes them on its way; or
// computes them and leaves out what only the logits need.
enum class Terms { kKept, kRenewed, kOnly };

struct Step {
  const Batch& batch;
  const ModelInput& input;
  uint64_t seed = 0;
  float dropout = 0;  // 0 in inference
  Terms terms = Terms::kKept;
  float input_dropout = 0;  // the same of the layer that takes the features
  bool training = false;    // statistics of this batch; else those of inference

  // As that layer sees it.
  Step of_input() const {
    Step own = *this;
    own.dropout = input_dropout;
    return own;
  }
  kernels::DropoutKey dropout_key(uint32_t stream) const { return {seed, batch.epoch, batch.index, stream}; }
};

}  // namespace cgcn
