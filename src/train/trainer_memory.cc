// What a training run keeps in memory, and how an exact evaluation finds room beside it.
#include <algorithm>

#include "batch/input_reader.h"
#include "common/log.h"
#include "common/memory.h"
#include "partition/metis.h"
#include "train/trainer.h"

namespace cgcn {
namespace {

// Weights, gradients, Adam's two moments: what is there from the start …
uint64_t resident_model(const Model& model) { return 4 * model.value_bytes(); }
// … and those of the best epoch until they are saved, or a model that is read from a checkpoint.
uint64_t model_bytes(const Model& model) { return resident_model(model) + 2 * model.value_bytes(); }

uint64_t history_bytes(const Model& model, uint64_t nodes) {
  uint64_t columns = 0;
  for (uint32_t l = 1; l < model.num_layers(); ++l) columns += model.layer_width(l);
  return nodes * columns * sizeof(float);
}

bool takes_x(const RunOptions& options) {
  return options.model.convolution == ConvolutionForm::kConcat || options.batch_aggregates_input();
}

// The batch's rows of sparse features as a matrix over the rows of W, its transpose, and where each row of W is in it.
uint64_t sparse_workspace(const Model& model, uint64_t entries, uint64_t rows) {
  return !model.shape().sparse_input ? 0 : entries * 18 + rows * 24 + 24 * uint64_t{model.shape().input_columns};
}

uint64_t label_bytes(const Labels& labels) { return labels.classes().size_bytes() + labels.bits().size_bytes(); }

// Before the scaling is measured: only whether there will be one counts.
uint64_t scaled_bytes(const RunOptions& options, const FeatureMatrix& features, bool aggregates) {
  ColumnScaling scaling;
  scaling.rows = options.train.normalise_rows;
  if (options.train.standardise) scaling.mean.resize(1);
  return scaling.copied_bytes(features, aggregates);
}

}  // namespace

ModelShape shape_of(const Dataset& data) {
  return {.input_columns = data.features.columns(),
          .sparse_input = !data.features.is_dense(),
          .num_classes = data.labels.num_classes(),
          .multi_label = data.labels.multi_label()};
}

// Clusters are taken for a little larger than the mean, and for twice as well linked.
uint64_t forecast_training_memory(const RunOptions& options, const Dataset& data) {
  const PartitionOptions partition = options.method.partition(options.partition);
  const uint64_t nodes = partition.transductive ? data.num_nodes() : data.split_sizes()[0];
  const uint32_t parts = partition.parts_of(nodes);
  const double part = static_cast<double>(nodes) / data.num_nodes();  // of the nodes, and of their neighbours again
  const bool in_clusters = options.method.method == Method::kCluster;
  const double q = in_clusters ? options.train.clusters_per_batch(parts) : parts;
  const auto of = [](double share, uint64_t bytes) {
    return static_cast<uint64_t>(std::min(share, 1.0) * static_cast<double>(bytes));
  };
  const uint64_t rows = std::min<uint64_t>(nodes, of(1.1 * q / parts, nodes) + 1);
  const uint64_t entries = of(part * part, data.graph.num_entries()) + nodes, batch = of(2 * q / parts, entries);
  const uint64_t storages = in_clusters ? kBatchesAhead + 1 : 1;
  const uint64_t features =
      of(part, data.features.is_dense() ? data.features.num_entries() * sizeof(float) : data.features.stored_bytes());
  const uint64_t arrays = (takes_x(options) ? 1 : 0) + (options.batch_aggregates_input() ? 0 : 1);

  Model model = Model::planned(options.model, shape_of(data));
  if (in_clusters || options.method.method == Method::kFullBatch)
    model.reserve({.max_nodes = static_cast<uint32_t>(rows), .max_entries = batch});
  uint64_t bytes = model_bytes(model) + model.workspace_bytes();
  if (options.method.method == Method::kVrGcn) bytes += history_bytes(model, nodes);
  bytes += nodes * 40 + of(part, label_bytes(data.labels));  // offsets, ids, order, cluster and role of each node
  bytes += storages * (rows * 32 + batch * (data.graph.directed() ? 24 : 16) + uint64_t{parts} * 8);
  bytes += in_clusters ? storages * arrays * of(2 * q / parts, features)
                       : arrays * features + entries * (data.graph.weighted() ? 8 : 4);
  bytes += of(part, scaled_bytes(options, data.features, !options.batch_aggregates_input()));
  bytes += least_evaluation_memory(model, data) +
           scaled_bytes(options, data.features, options.evaluated_product().has_value());
  bytes = std::max(bytes, least_aggregation_memory(data));
  if (options.train.evaluation.kind == EvaluationKind::kBlocks)
    bytes = std::max(bytes, resident_model(model) + estimate_metis_memory(data.num_nodes(), data.graph.num_entries()));
  return bytes;
}

// Before anything is made: what a model of this size takes whatever the clusters are.
void require_memory_for_model(const RunOptions& options, const Dataset& data, uint64_t budget) {
  const Model model = Model::planned(options.model, shape_of(data));
  const uint64_t least = model_bytes(model) + sparse_workspace(model, 0, 0) + least_evaluation_memory(model, data);
  if (memory_left(budget) < least)
    refuse_memory_left(std::max(least, forecast_training_memory(options, data)),
                       fmt::format("a model of {} weights", format_count(model.num_weights())));
}

// A·X only where a batch reads it. Scaled features are copies in memory: they are made where there is room for them.
PreparedFeatures Trainer::prepare_training() const {
  const bool aggregates = !options_.batch_aggregates_input();
  const uint64_t left = memory_left(budget_);
  if (left < scaled_bytes(options_, layout_.data.features, aggregates))
    refuse_memory_left(forecast_training_memory(options_, data_), "the scaled features");
  const auto product = aggregates ? std::optional(options_.first_normalisation()) : std::nullopt;
  return prepare_features(layout_, layout_.data, product, scaling_, left);
}

// Before the model is made. Links and features stay in memory as far as they fit, and are read for each batch where
// they do not. Methods whose batches have no known bound have random access to all of it, and a workspace that nobody
// can plan.
void Trainer::plan_memory() {
  release_pages();
  Model model = Model::planned(options_.model, shape_of(data_));
  model.reserve(batches_->limits());
  const Dataset& data = layout_.data;
  const uint64_t storages = kBatchesAhead + 1;
  const bool bounded = batches_->storage_bytes() > 0;
  const uint64_t rows = batches_->limits().max_nodes;
  uint64_t sparse_entries = 0;
  // X of the identity is not in a file; it is resident already, as the program is.
  const auto offer_features = [&](MemoryPlan& plan, const char* name, const FeatureMatrix& features, bool in_file) {
    const uint64_t entries = features.is_dense() ? 0 : batches_->most_entries(features.sparse_offsets());
    sparse_entries += entries;
    if (!in_file) return SIZE_MAX;
    if (!bounded) return plan.need(name, features.stored_bytes()), SIZE_MAX;
    return plan.offer(
        name, features.stored_bytes(),
        storages * FeatureReader::buffer_bytes(features, rows, entries) + features.sparse_offsets().size_bytes());
  };

  MemoryPlan plan;
  const uint64_t rss = memory_figures().rss;
  plan.need("program and tables",
            rss + kMemoryMargin + data.graph.offsets().size_bytes() + label_bytes(data.labels) + data.split.size());
  plan.need("model", model_bytes(model) + (batches_->has_remainders() ? history_bytes(model, data.num_nodes()) : 0));
  plan.need("batches", storages * batches_->storage_bytes());
  const bool links_in_file = bounded && batches_->link_buffer_bytes() > 0;
  const uint64_t link_bytes = data.graph.stored_bytes() - data.graph.offsets().size_bytes();
  size_t links = SIZE_MAX;
  if (links_in_file)
    links = plan.offer("adjacency", link_bytes, storages * batches_->link_buffer_bytes());
  else
    plan.need("adjacency", link_bytes);
  const bool from_store = scaling_.empty() && !scaling_.rows;  // else X is in memory already, as standardised A·X is
  if (scaling_.rows) plan.need("A·X", training_.aggregated.stored_bytes());
  const bool takes_product = !options_.batch_aggregates_input();
  const size_t aggregated = takes_product ? offer_features(plan, "A·X", training_.aggregated, from_store) : SIZE_MAX;
  const size_t x = takes_x(options_)
                       ? offer_features(plan, "features", training_.x,
                                        from_store && layout_.files->meta().at("features").at("kind") != "identity")
                       : SIZE_MAX;
  plan.need("workspace", model.workspace_bytes() + sparse_workspace(model, sparse_entries, rows));
  const uint64_t standardised = scaled_bytes(options_, data_.features, options_.evaluated_product().has_value());
  if (blocks_) plan.need("evaluation in blocks", blocks_->buffer_bytes(model));
  plan.need_at_times("exact evaluation", least_evaluation_memory(model, data_) + standardised);
  plan.settle(budget_, "this training");
  training_memory_ = plan.taken();
  evaluation_memory_ = plan.left_at_times() - standardised;
  log::note("{}{}", plan.text(), rows > 0 ? "" : "; the workspace of this method is not known ahead");

  const auto read = [&](size_t offer) { return offer != SIZE_MAX && !plan.in_memory(offer); };
  if (read(links)) batches_->read_links_from_disk();
  if (!read(x) && !read(aggregated)) return;
  const fs::path product = aggregated_path(layout_, options_.first_normalisation());
  std::optional<FeatureReader> x_rows, product_rows;
  if (takes_product)
    product_rows =
        read(aggregated) ? FeatureReader(training_.aggregated, product) : FeatureReader(training_.aggregated);
  if (takes_x(options_))
    x_rows = read(x) ? FeatureReader(training_.x, layout_.files->path()) : FeatureReader(training_.x);
  batches_ =
      std::make_unique<InputReader>(std::move(batches_), std::move(x_rows), std::move(product_rows), data.labels);
}

// Where nobody could plan the workspace, it is compared with the budget once it is there. Not with one that nobody
// asked for: most of what is mapped would be given back where memory is short.
void Trainer::check_memory() {
  if (batches_->limits().max_nodes > 0 || !options_.memory.given()) return;
  const uint64_t rss = memory_figures().rss;
  if (rss <= budget_) return;
  save();  // so that it can go on with more
  refuse_budget(rss, fmt::format("what the steps of epoch {} took", state_.epoch + 1));
}

// Mapped pages, which come back from the files where they are needed again.
void Trainer::release_pages() const {
  store_.release_pages();
  layout_.files->release_pages();
  training_.aggregated.release_rows(0, training_.aggregated.rows());
  if (whole_) whole_->aggregated.release_rows(0, whole_->aggregated.rows());
}

// Where everything fits at once nothing is given back. Otherwise the evaluation has the room of what training keeps
// mapped, and gives its own pages back when it is done.
Evaluation Trainer::evaluate_exactly_in_budget(bool show_progress) {
  if (!whole_) {
    release_pages();
    whole_ = prepare_features(store_, data_, options_.evaluated_product(), scaling_, memory_left(budget_));
  }
  const InferenceInput input{data_.graph, whole_->x, whole_->aggregated};
  const bool roomy =
      training_memory_ + least_evaluation_memory(model_, data_) + Inference::whole_memory(model_, input) <= budget_;
  uint64_t memory = budget_;
  if (!roomy) {  // what was planned, or less where the program has come to take more than its margin
    release_pages();
    memory = std::min(evaluation_memory_, std::max(least_evaluation_memory(model_, data_), memory_left(budget_)));
  }
  Evaluation evaluation = evaluate_exactly(model_, input, data_, memory, show_progress);
  if (!roomy) release_pages();
  return evaluation;
}

}  // namespace cgcn
