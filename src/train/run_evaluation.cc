#include "train/run_evaluation.h"

#include <algorithm>

#include "train/ranking.h"
#include "train/selection.h"

namespace cgcn {

Scores RunEvaluation::validate() {
  if (input_.cluster_evaluator) {
    if (input_.training_memory + input_.cluster_evaluator->mapped_bytes() > plan_.budget) release_pages();
    // Ranks may be interrupted at different blocks: all of them stop, or none.
    return group_.together([&] { return input_.cluster_evaluator->evaluate(model_, rule()).validation.scores(); });
  }
  if (group_.size() == 1)  // the ranks of a group share all nodes
    if (const std::optional<Scores> scores = score_neighbourhood()) return *scores;
  return evaluate_exactly_in_budget(/*show_progress=*/false, {.ranks = ranks(), .rule = rule()}, nullptr)
      .validation.scores();
}

bool RunEvaluation::ranks() const { return selects_by_rank(plan_.options.train.select_by); }

Evaluation RunEvaluation::test(RowSample* hidden) {
  const TrainOptions& options = plan_.options.train;
  const bool chooses = options.thresholds == Thresholds::kValidation;
  const OutputWork work{
      .ranks = true,
      .rule = rule(),
      .fits_temperature = true,
      .chooses_thresholds = chooses,
      .thresholds_by = options.select_by,
      .smoothing = {is_smoothable(plan_.data) ? options.smooth : Smoothing::kNone, options.select_by, chooses}};
  return evaluate_exactly_in_budget(/*show_progress=*/true, work, hidden);
}

// Nothing if the graph is large, or if the validation nodes need most of it: then all of it is computed.
void RunEvaluation::plan_neighbourhood() {
  near_planned_ = true;
  const Dataset& data = plan_.data;
  if (data.num_nodes() > kRowsScored) return;
  scaled_ = data;
  scaled_->features = whole().x;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.role(v) == Role::kValidation) nodes_.push_back(v);
  std::optional<FeatureMatrix> product;
  if (plan_.options.evaluated_product()) product = whole().aggregated;
  static const ColumnScaling kScaledAlready;
  near_.emplace(model_, *scaled_, plan_.options.first_normalisation(), kScaledAlready, std::move(product));
  // Rows are read from the whole graph's mappings, which nobody gives back in between.
  const uint64_t mapped = whole().x.stored_bytes() + whole().aggregated.stored_bytes() + data.graph.stored_bytes();
  const uint64_t left = memory_left(plan_.budget);
  if (left < mapped || !near_->possible() || !near_->plan(nodes_, model_.num_layers(), left - mapped)) near_.reset();
}

// The same bits as from all nodes: so few are scored in one sum, which sees them in the same order.
std::optional<Scores> RunEvaluation::score_neighbourhood() {
  if (!near_planned_) plan_neighbourhood();
  if (!near_) return std::nullopt;
  const ModelShape& shape = model_.shape();
  const SlabMatrix logits = near_->run();
  SlabMatrix rows(plan_.data.num_nodes(), shape.num_classes, 0);
  for (size_t i = 0; i < nodes_.size(); ++i)
    std::copy_n(logits.matrix().row(i), shape.num_classes, rows.matrix().row(nodes_[i]));
  Tally tally(shape.num_classes, shape.multi_label);
  tally.add(rows.matrix().data, shape.num_classes, 0, nodes_, plan_.data.labels, rule());
  if (ranks())
    if (const auto ranking = rank_role(rows, plan_.data, Role::kValidation, memory_left(plan_.budget)))
      tally.set_ranking(*ranking);
  return tally.scores();
}

const PreparedFeatures& RunEvaluation::whole() {
  if (!whole_) {
    release_pages();
    group_.in_turn([&] {
      whole_ = prepare_features(plan_.store, plan_.data, plan_.options.evaluated_product(), input_.scaling,
                                memory_left(plan_.budget));
    });
  }
  return *whole_;
}

void RunEvaluation::release_pages() const {
  plan_.store.release_pages();
  input_.release_pages();
  if (whole_) whole_->aggregated.release_rows(0, whole_->aggregated.rows());
}

// Made if it is of use in so much memory, its own included.
bool RunEvaluation::has_order(const InferenceInput& input, uint64_t memory, Smoothing smoothing) {
  const Dataset& data = plan_.data;
  const uint64_t beside = memory_beside_inference(model_, data) + InferenceOrder::bytes(data.num_nodes()) +
                          smoothing_memory(model_, data, smoothing);
  const uint64_t rows = uint64_t{data.num_nodes()} * plan_.options.model.hidden * sizeof(float);
  if (group_.size() > 1 || memory < beside || !InferenceOrder::helps(rows) ||
      !Inference::takes_order(model_, input, memory - beside))
    return false;
  if (!order_) order_.emplace(data.graph, input_.layout.order.span(), input_.layout.cluster_offsets.span());
  return true;
}

// If everything fits at once nothing is given back. Otherwise the evaluation has the room of what training keeps
// mapped, and gives its own pages back when it is done.
Evaluation RunEvaluation::evaluate_exactly_in_budget(bool show_progress, const OutputWork& work, RowSample* hidden) {
  const Dataset& data = plan_.data;
  const PreparedFeatures& features = whole();
  if (!share_) share_.emplace(group_, data.graph);
  InferenceInput input{data.graph, features.x, features.aggregated, &*share_};
  const uint64_t least = least_evaluation_memory(model_, data, work.smoothing.kind, group_.size());
  const bool roomy = input_.training_memory + least + Inference::whole_memory(model_, input) +
                         InferenceOrder::bytes(data.num_nodes()) <=
                     plan_.budget;
  uint64_t memory = plan_.budget - std::min(plan_.budget, input_.training_memory);
  if (!roomy) {  // what was planned, or less if the program has come to take more than its margin
    release_pages();
    memory = std::min(input_.evaluation_memory, std::max(least, memory_left(plan_.budget)));
  }
  if (has_order(input, memory, work.smoothing.kind)) {
    input.order = &*order_;
    memory -= InferenceOrder::bytes(data.num_nodes());
    if (!roomy) release_pages();
  }
  Evaluation evaluation = evaluate_exactly(model_, input, data, memory, show_progress, work, hidden);
  if (!roomy) {
    order_.reset();
    release_pages();
  }
  return evaluation;
}

}  // namespace cgcn
