// What the features of a store are, whatever way they are stored: dense in float32 or float16, and sparse, give the
// same hash where they hold the same numbers.
#pragma once

#include <string>

#include "common/file.h"
#include "graph/features.h"

namespace cgcn {

// The hash of the feature arrays in `folder`, named as docs/formats.md says. Reads them block by block.
std::string hash_feature_files(const fs::path& folder, FeatureMatrix::Kind kind, NodeId rows, uint32_t columns);

}  // namespace cgcn
