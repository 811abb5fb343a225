// What is chosen on the validation nodes once a model is trained: a temperature for its probabilities (Guo et al.,
// 2017), and a threshold for each class of a multi-label model.
//
//   temperature T:  the loss of logits / T is least; convex in 1/T, found by Newton's steps between bounds
//   thresholds:     each class's own F1 is highest (ranking.h)
#pragma once

#include "graph/dataset.h"
#include "train/output_rule.h"
#include "train/slab_matrix.h"

namespace cgcn {

// From 0.01 to 100; nothing if no validation node has a label. logits: a row for each node of data.
std::optional<double> fit_temperature(const SlabMatrix& logits, const Dataset& data);

// memory: see for_each_ranked_class().
std::vector<float> choose_thresholds(const SlabMatrix& logits, const Dataset& data, uint64_t memory);

}  // namespace cgcn
