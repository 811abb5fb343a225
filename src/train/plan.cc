#include "train/plan.h"

#include <algorithm>

#include "common/error.h"
#include "common/progress.h"
#include "nn/history.h"
#include "partition/metis.h"
#include "train/evaluation.h"
#include "train/ranking.h"
#include "train/selection.h"
#include "train/slot_gradients.h"

namespace cgcn {

using kernels::Precision;

namespace {

// Before there are clusters: those of a batch are taken for a little larger than the mean, and for twice as well
// linked.
constexpr double kLargerThanMean = 1.1, kBetterLinked = 2;

void require_trainable(const Dataset& data) {
  if (!data.labels.present()) throw Error("has no labels to train on", data.path.string(), "import it with labels");
  if (data.split_sizes()[0] == 0)
    throw Error("has no training nodes", data.path.string(), "import it with a split, such as --split 60/20/20");
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.is_trained_on(v)) return;
  throw Error(
      "none of its training nodes has a known label", data.path.string(),
      "import it with labels of training nodes, or with a split of the labelled nodes, such as --split 60/20/20");
}

}  // namespace

void require_possible(const RunOptions& options, const Dataset& data) {
  if (options.method.method == Method::kVrGcn && options.method.first_layer == FirstLayer::kBatch)
    throw Error("vrgcn takes the first layer's aggregation exact: it has a history of embeddings, not of features",
                "--first-layer batch", "leave it out");
  if (options.method.method == Method::kVrGcn && options.model.input_projection)
    throw Error("vrgcn takes the first layer's aggregation exact, which an input projection does not allow",
                "--input-projection", "leave it out, or use another --method");
  if (options.method.method == Method::kVrGcn && options.train.batches_per_step > 1)
    throw Error("vrgcn keeps a history of embeddings that every batch changes: a step has one batch, in one process",
                "--batches-per-step", "leave it and mpirun out, or use another --method");
  if (options.method.method == Method::kVrGcn && options.model.precision == Precision::kBFloat16)
    throw Error("vrgcn's history of embeddings is float32", "--precision bfloat16",
                "leave it out, or use another --method");
  if (options.method.first_layer == FirstLayer::kBatch && !options.model.input_projection &&
      !data.features.is_dense() && options.model.first_dropout() > 0 &&
      options.model.dropout_place == DropoutPlace::kAfter)
    throw Error(
        "with sparse features, a first layer that aggregates over the batch cannot apply dropout after aggregation",
        "--first-layer batch", "--dropout-place before, or --dropout 0");
  const SelectBy by = options.train.select_by;
  if (by != SelectBy::kAuto && by != SelectBy::kLoss && is_of_regression(by) != data.labels.regression())
    throw Error(data.labels.regression() ? "is a score of classes, and the labels are numbers"
                                         : "is a score of numbers, and the labels are classes",
                "--select-by", data.labels.regression() ? "r2, mae, rmse or loss" : "micro-f1, macro-f1 or loss");
  if (data.labels.regression() && options.train.class_weights != "none")
    throw Error("the labels are numbers", "--class-weights", "leave it out");
  if (selects_by_rank(options.train.select_by)) {
    if (!has_ranking(data.labels))
      throw Error(fmt::format("needs two classes, or a multi-label graph; this one has {} classes, one per node",
                              data.labels.num_classes()),
                  "--select-by", "micro-f1, macro-f1 or loss");
    if (options.train.evaluation.kind == EvaluationKind::kClusters)
      throw Error("ranks the nodes of the whole graph, and blocks are scored one by one", "--select-by",
                  "leave --evaluation blocks out, or select by another score");
  }
  if (options.model.initial_residual > 0 && !options.model.input_projection)
    throw Error("H_0 is the input projection's output, and there is none", "--initial-residual",
                "add --input-projection");
  if (options.model.head_kind() == HeadKind::kLinear && options.model.norm_place == NormPlace::kBefore)
    throw Error("a linear head takes rows that have been through norm and ReLU", "--norm-place before",
                "leave it or --head linear and --jumping out");
  const bool samples = options.method.method == Method::kGraphSage || options.method.method == Method::kVrGcn;
  const uint32_t sampled = options.model.layers - (options.batch_aggregates_input() ? 0 : 1);
  if (samples && sampled > 0 && options.method.fanout != "auto" && options.method.fanouts().size() > sampled)
    throw Error(fmt::format("has {} numbers, but {} of the {} layers sample neighbours",
                            options.method.fanouts().size(), sampled, options.model.layers),
                "--fanout", "leave the last ones out");
  if (options.train.standardise && options.train.normalise_rows)
    throw Error("columns and rows cannot both be scaled", "--normalise-rows", "leave it or --standardise out");
}

namespace {

// What a model of this size takes whatever the clusters are.
void require_memory_for_model(const TrainingPlan& plan) {
  const Model model = Model::planned(plan.options.model, shape_of(plan.data));
  const uint64_t least = model_bytes(plan, model) + model.sparse_input_bytes(0, 0) +
                         least_evaluation_memory(model, plan.data, plan.options.train.smooth, plan.ranks);
  if (memory_left(plan.budget) < least)
    refuse_memory_left(std::max(least, forecast_training_memory(plan)),
                       fmt::format("a model of {} weights", format_count(model.num_weights())));
}

uint64_t share_of(double share, uint64_t bytes) {
  return static_cast<uint64_t>(std::min(share, 1.0) * static_cast<double>(bytes));
}

}  // namespace

TrainingPlan plan_training(const Store& store, const RunOptions& options, uint32_t processes, uint32_t ranks) {
  TrainingPlan plan{store, options, store.dataset(), options.memory.budget(processes), ranks};
  require_trainable(plan.data);
  require_possible(options, plan.data);
  require_memory_for_model(plan);
  return plan;
}

ModelShape shape_of(const Dataset& data) {
  return {.input_columns = data.features.columns(),
          .sparse_input = !data.features.is_dense(),
          .num_classes = data.labels.num_classes(),
          .multi_label = data.labels.multi_label(),
          .regression = data.labels.regression()};
}

uint64_t resident_model_bytes(const TrainingPlan& plan, const Model& model) {
  const uint64_t sums = SlotGradients::planned_bytes(model, plan.options.train.batches_per_step, plan.ranks);
  const uint64_t values = model.value_bytes(), gradients = model.value_bytes();
  return values + gradients + sums + planned_optimiser_bytes(plan.options.optimiser, model);
}

uint64_t model_bytes(const TrainingPlan& plan, const Model& model) {
  const uint64_t best = model.value_bytes(), loaded = model.value_bytes();
  return resident_model_bytes(plan, model) + best + loaded;
}

uint64_t scaled_bytes(const RunOptions& options, const FeatureMatrix& features, bool aggregates, Precision kept) {
  ColumnScaling scaling;
  scaling.rows = options.train.normalise_rows;
  if (options.train.standardise) scaling.mean.resize(1);
  const uint64_t copied = scaling.copied_bytes(features, aggregates);
  const bool rounds = kept == Precision::kBFloat16 && features.is_dense();
  return copied + (copied > 0 && rounds ? features.num_entries() * sizeof(BFloat16) : 0);  // one of them twice
}

uint64_t forecast_training_memory(const TrainingPlan& plan) {
  const RunOptions& options = plan.options;
  const Dataset& data = plan.data;
  const uint64_t nodes = plan.partition().transductive ? data.num_nodes() : data.split_sizes()[0];
  const uint32_t clusters = plan.partition().parts_of(nodes);
  const double share = static_cast<double>(nodes) / data.num_nodes();  // of the nodes, and of their neighbours again
  const uint64_t entries = share_of(share * share, data.graph.num_entries()) + nodes;
  const uint64_t features = share_of(
      share, data.features.is_dense() ? data.features.num_entries() * kernels::bytes_of(options.model.precision)
                                      : data.features.stored_bytes());
  const uint64_t arrays = (plan.takes_x() ? 1 : 0) + (plan.takes_product() ? 1 : 0);
  Model model = Model::planned(options.model, shape_of(data));

  uint64_t bytes = ClusterLayout::table_bytes(data, nodes) + ClusterBatches::table_bytes(nodes);
  if (options.method.uses_clusters()) {
    const uint32_t q = options.train.clusters_per_batch(clusters);
    const double of_batch = static_cast<double>(q) / clusters;
    const auto rows = static_cast<uint32_t>(std::min(nodes, share_of(kLargerThanMean * of_batch, nodes) + 1));
    const BatchLimits batch{.max_nodes = rows, .max_entries = share_of(kBetterLinked * of_batch, entries)};
    model.reserve(batch);
    const ClusterStorageSizes sizes(clusters, q, batch, data.graph.directed(), options.model.layer_normalisation());
    bytes += (kBatchesAhead + 1) *
             (ClusterBatches::storage_bytes(sizes) + arrays * share_of(kBetterLinked * of_batch, features));
  } else {  // a batch may be all there is
    const BatchLimits whole{.max_nodes = static_cast<uint32_t>(nodes), .max_entries = entries};
    if (options.method.method == Method::kFullBatch) model.reserve(whole);
    bytes += ClusterBatches::storage_bytes({1, 1, whole, data.graph.directed(), options.model.layer_normalisation()});
    const uint64_t links = data.graph.targets().size_bytes() + data.graph.weights().size_bytes();
    bytes += arrays * features + share_of(share * share, links);
  }
  if (options.method.method == Method::kVrGcn) bytes += EmbeddingHistory::planned_bytes(model, nodes);
  bytes += model_bytes(plan, model) + model.workspace_bytes();
  const uint64_t scaled =
      share_of(share, scaled_bytes(options, data.features, plan.takes_product(), options.model.precision));
  bytes += scaled;
  if (options.train.normalise_rows && plan.takes_product()) bytes += features;  // A·X, mapped whole
  bytes += least_evaluation_memory(model, data, options.train.smooth, plan.ranks) +
           scaled_bytes(options, data.features, options.evaluated_product().has_value(), Precision::kFloat32);
  bytes = std::max(bytes, scaled + least_aggregation_memory(data));
  if (options.train.evaluation.kind == EvaluationKind::kClusters)
    bytes = std::max(
        bytes, resident_model_bytes(plan, model) + estimate_metis_memory(data.num_nodes(), data.graph.num_entries()));
  return bytes;
}

}  // namespace cgcn
