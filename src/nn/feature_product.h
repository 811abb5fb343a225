// Features of every kind times a weight, for exact inference.
#pragma once

#include "graph/features.h"
#include "nn/linear.h"

namespace cgcn {

// C: rows of the features from `first` on. right: null if it is `left` alone.
struct FeatureRows {
  const FeatureMatrix& left;
  const FeatureMatrix* right;
  NodeId first;
};

// z = [left, right]·W + b on all threads, for so many rows as z has. packed: W as Linear packs it, for a product in
// bfloat16 of dense features; null: in float32.
void multiply_features(const Linear& linear, const FeatureRows& rows, const BFloat16* packed, kernels::Matrix z);

}  // namespace cgcn
