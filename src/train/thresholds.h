// A threshold for each class of a multi-label model, chosen on the validation nodes.
//
// They are logits of a grid. Three rules compete: 0 for all classes (probability 0.5), another one for all, and one for
// each class. The last counts for each class its own nodes and kSharedPositives of the average class, so that a
// class with few keeps near the common threshold.
//
//   micro F1 = 2·TP / (P + N), P bits being set and N predicted; it is highest where Σ_c (2·TP_c - F·N_c) is, with F
//              the F1 itself: class by class for a given F, which then rises (Dinkelbach)
//   macro F1:  the highest F1 of each class
//
// Each rule is fitted to either half of the nodes and scored on the other. The best one is fitted to all of them: a
// later rule must do better than those before it.
#pragma once

#include <vector>

#include "graph/dataset.h"
#include "train/slab_matrix.h"
#include "train/train_options.h"

namespace cgcn {

// More classes have one threshold together, by micro F1: their counts take 5 KiB each.
inline constexpr uint32_t kMostThresholds = 2048;

// by: macro F1, or micro F1 for any other score. Empty: 0 for all. logits: a row for each node of data.
std::vector<float> choose_thresholds(const SlabMatrix& logits, const Dataset& data, SelectBy by);

}  // namespace cgcn
