// The one place where options become layers.
#pragma once

#include <memory>
#include <vector>

#include "nn/layer.h"
#include "nn/model_options.h"
#include "nn/parameters.h"

namespace cgcn {

// From the features to the logits. Their parameters are added, not allocated.
std::vector<std::unique_ptr<Layer>> make_layers(const ModelOptions& options, const ModelShape& shape,
                                                Parameters& parameters);

}  // namespace cgcn
