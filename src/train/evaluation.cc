#include "train/evaluation.h"

#include <array>
#include <span>
#include <vector>

#include "batch/batch_queue.h"
#include "common/error.h"
#include "common/interrupt.h"
#include "common/memory_budget.h"
#include "common/progress.h"
#include "common/threads.h"
#include "common/timer.h"
#include "train/calibration.h"
#include "train/embedding_picture.h"
#include "train/ranking.h"
#include "train/thresholds.h"

namespace cgcn {
namespace {

constexpr uint32_t kClustersAhead = 2;  // prepared while one is in use

constexpr uint64_t kLeastInCluster = 4;  // nodes, on average: of fewer no edge is left, and METIS takes minutes

PartitionOptions whole_graph_in(uint32_t clusters, const Store& store, uint64_t budget) {
  const uint64_t nodes = store.dataset().num_nodes(), most = std::max<uint64_t>(1, nodes / kLeastInCluster);
  if (clusters > most)
    throw Error(fmt::format("{} blocks of {} nodes have fewer than {} nodes each", clusters, format_count(nodes),
                            kLeastInCluster),
                "--evaluation-blocks", fmt::format("{} or fewer", most));
  PartitionOptions options;
  options.parts = clusters;
  options.transductive = true;
  options.take_memory(budget, store);
  return options;
}

PreparedFeatures prepare_in_clusters(const ClusterLayout& layout, const RunOptions& options,
                                     const ColumnScaling& scaling, uint64_t budget) {
  layout.files->release_pages();
  return prepare_features(layout, layout.data, options.evaluated_product(), scaling, memory_left(budget));
}

Evaluation nothing_scored(const Model& model) {
  const Tally none(model.shape().num_classes, model.shape().multi_label);
  return {none, none, none};
}

constexpr Role kRoles[] = {Role::kTrain, Role::kValidation, Role::kTest};

const OutputRule& scored_rule(const Evaluation& evaluation) {
  return evaluation.smoothing && evaluation.smoothing->chosen() ? evaluation.smoothing->rule : evaluation.rule;
}

// Logits of nodes first … first + rows.rows.
void add_rows(kernels::ConstMatrix rows, NodeId first, const Dataset& data, Evaluation& evaluation,
              std::span<const Role> roles = kRoles) {
  const OutputRule& rule = scored_rule(evaluation);
  std::array<std::vector<NodeId>, 3> nodes;
  for (size_t r = 0; r < rows.rows; ++r) {
    const NodeId v = first + static_cast<NodeId>(r);
    if (const Role role = data.role(v); role != Role::kNone) nodes[static_cast<size_t>(role)].push_back(v);
  }
  for (const Role role : roles)
    evaluation.of(role).add(rows.data, rows.stride, first, nodes[static_cast<size_t>(role)], data.labels, rule);
}

void score_roles(const SlabMatrix& logits, const Dataset& data, const OutputWork& work, uint64_t memory,
                 Evaluation& evaluation, std::span<const Role> roles) {
  GraphShare(data.graph).collect(logits, kRowsScored, [&](kernels::ConstMatrix rows, NodeId first) {
    add_rows(rows, first, data, evaluation, roles);
  });
  if (!work.ranks || !has_ranking(data.labels)) return;
  for (const Role role : roles)
    if (const std::optional<RankScores> ranking = rank_role(logits, data, role, memory))
      evaluation.of(role).set_ranking(*ranking);
}

// What is chosen on validation nodes, for the model's own output and then for smoothing it, and the scores, from the
// logits of all nodes.
void work_on_all(SlabMatrix& logits, const Dataset& data, const OutputWork& work, uint64_t memory,
                 Evaluation& evaluation) {
  if (work.needs_temperature(data.labels)) {
    TemperatureFit fit(data, memory);
    GraphShare(data.graph).collect(logits, kRowsScored, [&](auto rows, NodeId first) { fit.add(rows, first); });
    if (const auto fitted = fit.fit({}, fit.doubt())) evaluation.rule.temperature = fitted->temperature;
  }
  if (work.chooses_thresholds && data.labels.multi_label())
    evaluation.rule.thresholds = choose_thresholds(logits, data, work.thresholds_by);
  if (work.smoothing.kind == Smoothing::kNone) return score_roles(logits, data, work, memory, evaluation, kRoles);
  score_roles(logits, data, work, memory, evaluation, std::span(kRoles).first(1));
  evaluation.smoothing = smooth_outputs(logits, data, evaluation.rule, work.smoothing, memory);
  score_roles(logits, data, work, memory, evaluation, std::span(kRoles).subspan(1));
}

// Logits that are nowhere kept: they are computed for the temperature, if that is wanted, and again to be scored. For
// graphs whose logits would take more room on disk than anything else.
void score_as_they_come(const Inference& inference, const StageInput& last, const Dataset& data, const OutputWork& work,
                        Evaluation& evaluation) {
  if (work.needs_temperature(data.labels)) {
    TemperatureFit fit(data, 0);
    inference.for_each_rows(last, kRowsScored, [&](auto rows, NodeId first) { fit.add(rows, first); });
    if (const auto fitted = fit.fit({}, fit.doubt())) evaluation.rule.temperature = fitted->temperature;
  }
  inference.for_each_rows(last, kRowsScored, [&](auto rows, NodeId first) { add_rows(rows, first, data, evaluation); });
}

// In a group the first rank alone has them all.
void score_kept(SlabMatrix logits, const GraphShare& share, const Dataset& data, const OutputWork& work,
                uint64_t memory, Evaluation& evaluation) {
  if (!work.needs_all(data.labels) && !work.needs_temperature(data.labels))
    return share.collect(logits, kRowsScored,
                         [&](auto rows, NodeId first) { add_rows(rows, first, data, evaluation); });
  const uint64_t kept = logits.spilled() ? 0 : uint64_t{logits.rows()} * logits.columns() * sizeof(float);
  const uint64_t left = memory > kept ? memory - kept : 0;
  if (!share.is_alone()) logits = share.collect_all(logits, left / 2);
  share.on_first([&] { work_on_all(logits, data, work, share.is_alone() ? left : left / 2, evaluation); });
}

}  // namespace

uint64_t memory_beside_inference(const Model& model, const Dataset& data) {
  // Rows of N(A) and mapped pages that tasks work on: of an edge its column, value and page, of a node X and A·X.
  constexpr uint64_t kLeastInFlight = uint64_t{8} << 20;
  const uint64_t nodes = std::max<uint64_t>(1, data.num_nodes());
  const uint64_t of_row =
      (data.graph.num_entries() / nodes + 1) * 3 * sizeof(uint32_t) + 2 * data.features.stored_bytes() / nodes;
  const uint64_t in_flight = std::max(kLeastInFlight, of_row * kInferenceBlock * static_cast<uint64_t>(thread_count()));
  const size_t hidden = model.num_layers() > 1 ? model.layer_width(model.num_layers() - 1) : 0;
  return in_flight + sampled_bytes(data, hidden) + data.graph.offsets().size_bytes() +
         2 * data.features.sparse_offsets().size_bytes() + data.labels.stored_bytes() + data.split.size() +
         std::min<uint64_t>(kRowsScored, data.num_nodes()) *
             (model.shape().num_classes * sizeof(float) + sizeof(NodeId));
}

uint64_t smoothing_memory(const Model& model, const Dataset& data, Smoothing smoothing, uint32_t ranks) {
  if (smoothing == Smoothing::kNone) return 0;
  return (ranks > 1 ? 2 : 1) * least_smoothing_memory(data, model.shape().num_classes);
}

uint64_t least_evaluation_memory(const Model& model, const Dataset& data, Smoothing smoothing, uint32_t ranks) {
  return memory_beside_inference(model, data) + Inference::least_memory(model, data.num_nodes()) +
         smoothing_memory(model, data, smoothing, ranks);
}

bool OutputWork::needs_temperature(const Labels& labels) const { return fits_temperature && !labels.regression(); }

bool OutputWork::needs_all(const Labels& labels) const {
  return smoothing.kind != Smoothing::kNone || (labels.multi_label() && chooses_thresholds) ||
         (ranks && has_ranking(labels));
}

Evaluation evaluate_exactly(const Model& model, const InferenceInput& input, const Dataset& data, uint64_t memory,
                            bool show_progress, const OutputWork& work, RowSample* hidden) {
  const Timer timer;
  const GraphShare alone(data.graph);
  const GraphShare& share = input.share != nullptr ? *input.share : alone;
  const uint32_t ranks = share.is_alone() ? 1 : share.group().size();
  const uint64_t around = memory_beside_inference(model, data),
                 smoothed = smoothing_memory(model, data, work.smoothing.kind, ranks),
                 least = least_evaluation_memory(model, data, work.smoothing.kind, ranks);
  share.together([&] {
    if (memory < least)
      refuse_memory_left(least, fmt::format("an evaluation of {} nodes", format_count(data.num_nodes())));
  });
  Evaluation evaluation = nothing_scored(model);
  evaluation.rule = work.rule;
  std::optional<SlabMatrix> logits;
  {  // What is done with all logits may take what the inference itself holds: its scales and packed weights.
    const Inference inference(model, input, memory - around - smoothed, show_progress);
    StageInput last = inference.run_below(hidden);
    // A stage that narrows puts them in the place of what it keeps.
    const bool take_room = inference.spills() && !last.stage.narrows();
    if (take_room && share.is_alone() && !work.needs_all(data.labels))
      score_as_they_come(inference, last, data, work, evaluation);
    else
      logits = inference.run_last(std::move(last));
    evaluation.spilled = inference.spills();
  }
  if (logits) score_kept(*std::move(logits), share, data, work, memory - around, evaluation);
  if (!share.is_alone())
    for (const Role role : kRoles) {
      Tally& tally = evaluation.of(role);
      tally.unpack(share.group().broadcast(tally.pack()));
    }
  evaluation.seconds = timer.seconds();
  return evaluation;
}

ClusterEvaluator::ClusterEvaluator(const Store& store, const RunOptions& options, const ColumnScaling& scaling,
                                   uint32_t clusters, uint64_t budget)
    : budget_(budget),
      layout_(ensure_partition(store, whole_graph_in(clusters, store, budget)).layout),
      features_(prepare_in_clusters(layout_, options, scaling, budget)),
      batches_(layout_, {.normalisation = options.model.layer_normalisation(),
                         .aggregates_input = options.model.input_projection}) {
  release_pages();
}

void ClusterEvaluator::release_pages() const {
  layout_.files->release_pages();
  features_.aggregated.release_rows(0, features_.aggregated.rows());
}

uint64_t ClusterEvaluator::buffer_bytes(Model& model) const {
  const uint64_t before = model.workspace_bytes();
  model.reserve(batches_.limits());
  return model.workspace_bytes() - before + (kClustersAhead + 1) * batches_.storage_bytes() +
         uint64_t{batches_.limits().max_nodes} * model.shape().num_classes * sizeof(float);
}

uint64_t ClusterEvaluator::mapped_bytes() const {
  return layout_.data.graph.stored_bytes() + features_.x.stored_bytes() + features_.aggregated.stored_bytes();
}

Evaluation ClusterEvaluator::evaluate(Model& model, const OutputRule& rule) const {
  const Timer timer;
  const uint32_t classes = model.shape().num_classes;
  model.reserve(batches_.limits());
  Buffer<float> logits(size_t{batches_.limits().max_nodes} * classes);
  Evaluation evaluation = nothing_scored(model);
  evaluation.rule = rule;
  BatchQueue queue(batches_, 0, 1, 0, kClustersAhead);
  for (uint32_t i = 0; i < batches_.batches_per_epoch(); ++i) {
    throw_if_interrupted();
    const Batch& batch = queue.next();  // one cluster: its rows are neighbours in the layout
    model.predict(batch, {features_.x, features_.aggregated, layout_.data.labels}, logits.data());
    add_rows({logits.data(), batch.num_outputs, classes}, batch.inputs[0], layout_.data, evaluation);
    if (memory_left(budget_) == 0) release_pages();
  }
  if (memory_left(budget_) < mapped_bytes()) release_pages();
  evaluation.seconds = timer.seconds();
  return evaluation;
}

}  // namespace cgcn
