// What depends on the order of nodes by their logit, class by class: area under the ROC curve and average precision.
//
// The logits of all nodes may be larger than memory: as many classes as fit are gathered in one pass over their rows.
// Every class is computed on its own, so that neither the memory nor the threads change a bit.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "graph/dataset.h"
#include "train/metrics.h"
#include "train/slab_matrix.h"

namespace cgcn {

// Whether there are such scores: several classes per node, or two classes.
inline bool has_ranking(const Labels& labels) { return labels.multi_label() || labels.num_classes() == 2; }

// The one of two classes whose nodes are ranked before those of the other.
inline constexpr uint32_t kPositiveClass = 1;

// The logits of the nodes that have a class and of those that have not, each ascending.
struct RankedClass {
  std::span<const float> with, without;
};

// The share of pairs (one with, one without) in the right order; equal ones count half. Both must have some.
double roc_auc(const RankedClass& ranked);
// Σ_k (R_k - R_{k-1})·P_k over the distinct logits from the highest on, as scikit-learn defines it. Some must have it.
double average_precision(const RankedClass& ranked);

// Calls use(class, ranked), on several threads. Two classes of one per node: once, for kPositiveClass by the
// difference of the logits. logits: a row for each node of data. memory: for what is gathered; one class is gathered in
// any case.
void for_each_ranked_class(const SlabMatrix& logits, const Dataset& data, Role role, uint64_t memory,
                           const std::function<void(uint32_t, const RankedClass&)>& use);

// ROC-AUC over the classes that some nodes have and some have not, average precision over those that some have. Nothing
// if there is no such class.
std::optional<RankScores> rank_role(const SlabMatrix& logits, const Dataset& data, Role role, uint64_t memory);

}  // namespace cgcn
