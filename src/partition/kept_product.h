// N(A)·X of a store's nodes if it has been computed already (partition.h computes it).
#pragma once

#include <optional>

#include "graph/normalisation.h"
#include "graph/store.h"

namespace cgcn {

std::optional<FeatureMatrix> kept_aggregated_features(const Store& store, const Normalisation& normalisation);

}  // namespace cgcn
