// What a training run keeps in memory, and how an exact evaluation finds room beside it.
#include <algorithm>

#include "batch/input_reader.h"
#include "common/log.h"
#include "common/memory.h"
#include "train/trainer.h"

namespace cgcn {
namespace {

// Weights, gradients, Adam's two moments, and the weights of the best epoch until they are saved.
uint64_t model_bytes(const Model& model) { return 5 * model.values().size_bytes(); }

// The batch's rows of sparse features as a matrix over the rows of W, its transpose, and where each row of W is in it.
uint64_t sparse_workspace(const Model& model, uint64_t entries, uint64_t rows) {
  return !model.shape().sparse_input ? 0 : entries * 18 + rows * 24 + 24 * uint64_t{model.shape().input_columns};
}

uint64_t label_bytes(const Labels& labels) { return labels.classes().size_bytes() + labels.bits().size_bytes(); }

}  // namespace

// Links and features stay in memory as far as they fit, and are read for each batch where they do not. Methods whose
// batches have no known bound have random access to all of it, and a workspace that nobody can plan.
void Trainer::plan_memory() {
  release_pages();
  const Dataset& data = layout_.data;
  const uint64_t storages = kBatchesAhead + 1;
  const bool bounded = batches_->storage_bytes() > 0;
  const bool takes_x = options_.model.convolution == Convolution::kConcat || options_.batch_aggregates_input();
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
  plan.need("program and tables", memory_figures().rss + kMemoryMargin + data.graph.offsets().size_bytes() +
                                      label_bytes(data.labels) + data.split.size());
  plan.need("model", model_bytes(model_) + (history_ ? history_->bytes() : 0));
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
  const size_t x = takes_x ? offer_features(plan, "features", training_.x,
                                            from_store && layout_.files->meta().at("features").at("kind") != "identity")
                           : SIZE_MAX;
  plan.need("workspace", model_.workspace_bytes() + sparse_workspace(model_, sparse_entries, rows));
  const uint64_t standardised = from_store      ? 0
                                : scaling_.rows ? data_.features.stored_bytes()
                                                : 2 * data_.features.num_entries() * sizeof(float);
  plan.need_at_times("exact evaluation", least_evaluation_memory(model_, data_) + standardised);
  plan.settle(budget_, "this training");
  training_memory_ = plan.taken();
  evaluation_memory_ = plan.left_at_times() - standardised;
  log::note("{}{}", plan.text(), bounded ? "" : "; the workspace of this method is not known ahead");

  const auto read = [&](size_t offer) { return offer != SIZE_MAX && !plan.in_memory(offer); };
  if (read(links)) batches_->read_links_from_disk();
  if (!read(x) && !read(aggregated)) return;
  const fs::path product = aggregated_path(layout_, options_.first_normalisation());
  std::optional<FeatureReader> x_rows, product_rows;
  if (takes_product)
    product_rows =
        read(aggregated) ? FeatureReader(training_.aggregated, product) : FeatureReader(training_.aggregated);
  if (takes_x) x_rows = read(x) ? FeatureReader(training_.x, layout_.files->path()) : FeatureReader(training_.x);
  batches_ =
      std::make_unique<InputReader>(std::move(batches_), std::move(x_rows), std::move(product_rows), data.labels);
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
    whole_ = prepare_features(store_, data_, options_.first_normalisation(), scaling_, memory_left(budget_));
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
