// Scores of the model while it trains: exact ones take what training leaves of the budget.
#pragma once

#include <optional>

#include "train/neighbourhood.h"
#include "train/prepare.h"

namespace cgcn {

class RunEvaluation {
 public:
  // All outlive it.
  RunEvaluation(const TrainingPlan& plan, const TrainingInput& input, Model& model, dist::Group& group)
      : plan_(plan), input_(input), model_(model), group_(group) {}

  // Of the validation nodes, as the options say.
  Scores validate();
  // Of all nodes, exactly, with the hidden rows of some nodes.
  // Chooses the temperature, and the thresholds if the options ask for it.
  Evaluation test(RowSample* hidden);

 private:
  std::optional<Scores> score_neighbourhood();
  void plan_neighbourhood();
  const PreparedFeatures& whole();
  bool ranks() const;  // in a validation
  OutputRule rule() const { return {.target = input_.target}; }
  bool has_order(const InferenceInput& input, uint64_t memory, Smoothing smoothing);
  Evaluation evaluate_exactly_in_budget(bool show_progress, const OutputWork& work, RowSample* hidden);
  void release_pages() const;

  const TrainingPlan& plan_;
  const TrainingInput& input_;
  Model& model_;
  dist::Group& group_;
  std::optional<PreparedFeatures> whole_;  // of all nodes; made when first needed
  std::optional<GraphShare> share_;        // the same
  std::optional<InferenceOrder> order_;    // the same; kept if memory has room for all
  // If the rows that validation nodes need are far fewer than all.
  std::optional<Dataset> scaled_;  // with the features as the model takes them
  std::vector<NodeId> nodes_;      // those of validation
  std::optional<NeighbourhoodInference> near_;
  bool near_planned_ = false;
};

}  // namespace cgcn
