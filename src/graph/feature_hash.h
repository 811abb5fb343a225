// What the features of a store are, whatever way they are stored: dense in float32 or float16, and sparse, give the
// same hash if they hold the same numbers.
#pragma once

#include <string>

#include "graph/features.h"

namespace cgcn {

// Reads them block by block, and gives mapped pages back.
std::string hash_features(const FeatureMatrix& features);

}  // namespace cgcn
