// Features of every kind times a weight, for exact inference.
#pragma once

#include "graph/features.h"
#include "nn/linear.h"

namespace cgcn {

// z = [left, right]·W + b on all threads, for so many rows of the features as z has, from row `first` on. right: null
// if C is `left` alone.
void multiply_features(const Linear& linear, const FeatureMatrix& left, const FeatureMatrix* right, NodeId first,
                       kernels::Matrix z);

}  // namespace cgcn
