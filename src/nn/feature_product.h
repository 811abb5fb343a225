// Features of every kind times a weight, for exact inference.
#pragma once

#include "graph/features.h"
#include "kernels/matrix.h"

namespace cgcn {

// z = rows begin … end of the features · weight + keep·z. keep is 0 (z need not be initialised) or 1.
void add_feature_product(const FeatureMatrix& features, NodeId begin, NodeId end, kernels::ConstMatrix weight,
                         kernels::Matrix z, float keep);

// Rows of such a product that are computed at a time; fixed, so that the cut does not depend on threads.
inline constexpr size_t kProductRows = 512;

}  // namespace cgcn
