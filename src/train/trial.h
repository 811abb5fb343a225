// A short training without a run folder: what some settings are worth on a graph. What the store keeps for a training
// (clusters, A·X) it keeps for this one, too.
#pragma once

#include <functional>

#include "graph/store.h"
#include "train/run_options.h"

namespace cgcn {

// The score of the validation nodes that --select-by names (higher is better) after all epochs of the options, with the
// smoothing that they ask for. after_epoch: called after each. Throws Interrupted if the user stops it, and NotFinite.
double score_settings(const Store& store, const RunOptions& options, const std::function<void()>& after_epoch);

// How far apart two scores of the graph's validation nodes must be to say something: the deviation of a share of so
// many nodes.
double score_margin(double score, const Dataset& data, SelectBy by);

}  // namespace cgcn
