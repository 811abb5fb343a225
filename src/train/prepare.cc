#include "train/prepare.h"

#include "batch/input_reader.h"
#include "common/log.h"
#include "common/memory.h"
#include "kernels/bfloat16_gemm.h"
#include "nn/history.h"
#include "train/class_weights.h"
#include "train/slot_gradients.h"

namespace cgcn {
namespace {

using kernels::Precision;

ClusterLayout prepare_layout(const TrainingPlan& plan) {
  PartitionOptions partition = plan.partition();
  partition.take_memory(plan.budget, plan.store, [&] { return forecast_training_memory(plan); });
  return ensure_partition(plan.store, partition).layout;
}

ColumnScaling choose_scaling(const TrainingPlan& plan) {
  ColumnScaling scaling = plan.options.train.standardise ? measure_columns(plan.data) : ColumnScaling();
  scaling.rows = plan.options.train.normalise_rows;
  return scaling;
}

// A·X only if a batch reads it. Scaled features are copies in memory: they are made if there is room for them. In
// bfloat16 what a batch reads is rounded once: on disk, or in memory if it was scaled.
PreparedFeatures prepare_batch_features(const TrainingPlan& plan, const TrainingInput& input) {
  const uint64_t left = memory_left(plan.budget);
  if (left < scaled_bytes(plan.options, input.layout.data.features, plan.takes_product(), plan.options.model.precision))
    refuse_memory_left(forecast_training_memory(plan), "the scaled features");
  const auto product = plan.takes_product() ? std::optional(plan.options.first_normalisation()) : std::nullopt;
  const ClusterLayout& layout = input.layout;
  if (plan.options.model.precision == Precision::kFloat32)
    return prepare_features(layout, layout.data, product, input.scaling, left);
  PreparedFeatures features;
  if (!input.scaling.empty()) {
    features = prepare_features(layout, layout.data, product, input.scaling, left);
    features.x = features.x.rounded();
    if (product) features.aggregated = features.aggregated.rounded();
    return features;
  }
  const bool rows = input.scaling.rows;
  features.x = rows ? scale_features(layout.data, input.scaling) : layout.data.features;
  if (product)
    features.aggregated = aggregated_features(layout, *product, memory_left(plan.budget), rows ? &features.x : nullptr,
                                              Precision::kBFloat16);
  if (rows)
    features.x = features.x.rounded();
  else if (plan.takes_x())
    features.x = rounded_features(layout);
  return features;
}

void note_precision(Precision precision) {
  if (precision == Precision::kFloat32) return;
  const auto kernels = kernels::best_bfloat16_kernels();
  if (kernels == kernels::BFloat16Kernels::kFloat32)
    log::note(
        "--precision bfloat16: this processor has no fast instructions for it; it takes less memory, float32 is "
        "faster");
  else
    log::note("--precision bfloat16: products by {}", kernels::name_of(kernels));
}

std::unique_ptr<BatchSource> make_batches(const RunOptions& options, const ClusterLayout& layout) {
  if (options.method.uses_clusters() && options.train.per_batch > layout.num_clusters())
    log::note("--per-batch {}: there are {} clusters, and every batch has all of them", options.train.per_batch,
              layout.num_clusters());
  const ClusterBatchOptions batches{.clusters_per_batch = options.train.clusters_per_batch(layout.num_clusters()),
                                    .draw = options.train.draw,
                                    .normalisation = options.model.layer_normalisation(),
                                    .aggregates_input = options.batch_aggregates_input(),
                                    .seed = options.train.seed};
  return make_batch_source(options.method, layout, batches, options.model.layers);
}

// What stays in memory of a training and what is read for each batch, planned before the model is made. Methods whose
// batches have no known bound have random access to all of it, and a workspace that nobody can plan.
class InputPlan {
 public:
  InputPlan(const TrainingPlan& plan, const TrainingInput& input) : plan_(plan), input_(input) {
    Model model = Model::planned(plan.options.model, shape_of(plan.data));
    model.reserve(batches().limits());
    need_tables(model);
    offer_links();
    offer_features();
    memory_.need("workspace", model.workspace_bytes() + model.sparse_input_bytes(rows(), sparse_entries_) +
                                  SlotGradients::planned_row_bytes(model, sparse_entries_,
                                                                   plan.options.train.batches_per_step, plan.ranks));
    if (input.cluster_evaluator) memory_.need("evaluation in blocks", input.cluster_evaluator->buffer_bytes(model));
    const uint64_t scaled = scaled_bytes(plan.options, plan.data.features, plan.options.evaluated_product().has_value(),
                                         Precision::kFloat32);
    memory_.need("scaled features for evaluation", scaled);  // kept from one evaluation to the next
    memory_.need_at_times("exact evaluation",
                          least_evaluation_memory(model, plan.data, plan.options.train.smooth, plan.ranks));
    memory_.settle(plan.budget, "this training");
    evaluation_memory_ = memory_.left_at_times();
    log::note("{}{}", memory_.text(), rows() > 0 ? "" : "; the workspace of this method is not known ahead");
  }

  uint64_t training_memory() const { return memory_.taken(); }
  uint64_t evaluation_memory() const { return evaluation_memory_; }

  // The batches as they were, or reading what does not stay in memory.
  std::unique_ptr<BatchSource> apply(std::unique_ptr<BatchSource> batches) const {
    if (is_read(links_)) batches->read_links_from_disk();
    if (!is_read(x_) && !is_read(product_)) return batches;
    const PreparedFeatures& features = input_.features;
    const ClusterLayout& layout = input_.layout;
    const auto reader = [&](const FeatureMatrix& matrix, std::optional<size_t> offer, const fs::path& folder) {
      return is_read(offer) ? FeatureReader(matrix, folder) : FeatureReader(matrix);
    };
    std::optional<FeatureReader> x, product;
    if (plan_.takes_product())
      product = reader(features.aggregated, product_,
                       aggregated_path(layout, plan_.options.first_normalisation(), precision_of(features.aggregated)));
    const bool is_rounded = features.x.kind() != layout.data.features.kind();
    if (plan_.takes_x()) x = reader(features.x, x_, is_rounded ? rounded_path(layout) : layout.files->path());
    return std::make_unique<InputReader>(std::move(batches), std::move(x), std::move(product), layout.data.labels);
  }

 private:
  static constexpr uint64_t kStorages = kBatchesAhead + 1;
  static Precision precision_of(const FeatureMatrix& features) {
    return features.kind() == FeatureMatrix::Kind::kDenseBFloat16 ? Precision::kBFloat16 : Precision::kFloat32;
  }
  const BatchSource& batches() const { return *input_.batches; }
  uint64_t rows() const { return batches().limits().max_nodes; }
  bool bounded() const { return batches().storage_bytes() > 0; }
  bool is_read(std::optional<size_t> offer) const { return offer && !memory_.in_memory(*offer); }

  void need_tables(const Model& model) {
    const Dataset& data = input_.layout.data;
    memory_.need("program and tables", memory_figures().rss + kMemoryMargin + data.graph.offsets().size_bytes() +
                                           data.labels.stored_bytes() + data.split.size());
    const uint64_t history = batches().has_remainders() ? EmbeddingHistory::planned_bytes(model, data.num_nodes()) : 0;
    memory_.need("model", model_bytes(plan_, model) + history);
    memory_.need("batches", kStorages * batches().storage_bytes());
  }

  void offer_links() {
    const CsrGraph& graph = input_.layout.data.graph;
    const uint64_t bytes = graph.stored_bytes() - graph.offsets().size_bytes();
    if (bounded() && batches().link_buffer_bytes() > 0)
      links_ = memory_.offer("adjacency", bytes, kStorages * batches().link_buffer_bytes());
    else
      memory_.need("adjacency", bytes);
  }

  // If they were scaled, X and A·X are in memory already. X of the identity is not in a file either.
  void offer_features() {
    const PreparedFeatures& features = input_.features;
    const bool from_store = input_.scaling.empty() && !input_.scaling.rows;
    if (input_.scaling.rows) memory_.need("A·X", features.aggregated.stored_bytes());
    if (plan_.takes_product()) product_ = offer_matrix("A·X", features.aggregated, from_store);
    const bool has_file = input_.layout.files->meta().at("features").at("kind") != "identity";
    if (plan_.takes_x()) x_ = offer_matrix("features", features.x, from_store && has_file);
  }

  std::optional<size_t> offer_matrix(const char* name, const FeatureMatrix& features, bool in_file) {
    const uint64_t entries = features.is_dense() ? 0 : batches().most_entries(features.sparse_offsets());
    sparse_entries_ += entries;
    if (!in_file) return std::nullopt;
    if (bounded())
      return memory_.offer(
          name, features.stored_bytes(),
          kStorages * FeatureReader::buffer_bytes(features, rows(), entries) + features.sparse_offsets().size_bytes());
    memory_.need(name, features.stored_bytes());
    return std::nullopt;
  }

  const TrainingPlan& plan_;
  const TrainingInput& input_;
  MemoryPlan memory_;
  std::optional<size_t> links_, x_, product_;  // what was offered
  uint64_t sparse_entries_ = 0, evaluation_memory_ = 0;
};

std::string hash_partition(const ClusterLayout& layout) {
  Hasher hasher;
  hasher.add(layout.data.content_hash);
  hasher.add(layout.order.data(), layout.order.span().size_bytes());
  hasher.add(layout.cluster_offsets.data(), layout.cluster_offsets.span().size_bytes());
  return hasher.digest128_hex();
}

}  // namespace

void TrainingInput::release_pages() const {
  layout.files->release_pages();
  features.aggregated.release_rows(0, features.aggregated.rows());
  features.x.release_rows(0, features.x.rows());
}

namespace {

std::string hash_weights(const std::vector<float>& weights) {
  return weights.empty() ? std::string() : hex64(checksum(weights.data(), weights.size() * sizeof(float)));
}

}  // namespace

TrainedOn describe_data(const TrainingPlan& plan, const TrainingInput& input) {
  const Dataset& data = plan.data;
  return {.store = data.path.empty() ? std::string() : fs::absolute(plan.store.path()).string(),
          .name = data.name,
          .content_hash = data.content_hash,
          .partition_hash = hash_partition(input.layout),
          .class_weights_hash = hash_weights(input.class_weights),
          .class_names = data.class_names,
          .identity = data.features.kind() == FeatureMatrix::Kind::kIdentity,
          .feature_names = data.feature_names,
          .encoding = data.encoding};
}

namespace {

bool evaluates_clusters(const TrainingPlan& plan) {
  return plan.options.train.evaluation.kind == EvaluationKind::kClusters && plan.data.split_sizes()[1] > 0;
}

// The layout and its features.
void prepare_rows(const TrainingPlan& plan, StageTimes& stages, TrainingInput& input) {
  stages.time(Stage::kPartition, [&] { input.layout = prepare_layout(plan); });
  input.scaling = choose_scaling(plan);
  stages.time(Stage::kProduct, [&] { input.features = prepare_batch_features(plan, input); });
}

}  // namespace

void prepare_kept_files(const TrainingPlan& plan, StageTimes& stages) {
  TrainingInput input;
  prepare_rows(plan, stages, input);
  const EvaluationOptions& evaluation = plan.options.train.evaluation;
  if (evaluates_clusters(plan))
    ClusterEvaluator(plan.store, plan.options, input.scaling, evaluation.clusters, plan.budget);
}

TrainingInput prepare_training(const TrainingPlan& plan, StageTimes& stages) {
  TrainingInput input;
  if (plan.data.features.is_dense() || plan.options.model.layers > 1) note_precision(plan.options.model.precision);
  prepare_rows(plan, stages, input);
  input.class_weights = read_class_weights(plan.options.train.class_weights, plan.data);
  if (plan.data.labels.regression()) input.target = measure_target(plan.data);
  input.batches = make_batches(plan.options, input.layout);
  const auto release_pages = [&] {
    plan.store.release_pages();
    input.release_pages();
  };
  const EvaluationOptions& evaluation = plan.options.train.evaluation;
  if (evaluates_clusters(plan))
    stages.time(Stage::kPartition, [&] {
      release_pages();
      input.cluster_evaluator.emplace(plan.store, plan.options, input.scaling, evaluation.clusters, plan.budget);
    });
  release_pages();
  const InputPlan settled(plan, input);
  input.training_memory = settled.training_memory();
  input.evaluation_memory = settled.evaluation_memory();
  input.batches = settled.apply(std::move(input.batches));
  return input;
}

}  // namespace cgcn
