#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/log.h"
#include "common/mapping_faults.h"
#include "partition/block_picture.h"
#include "train/result.h"

namespace cgcn {
namespace {

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

void require_possible(const RunOptions& options, const Dataset& data) {
  if (options.method.method == Method::kVrGcn && options.method.first_layer == FirstLayer::kBatch)
    throw Error("vrgcn takes the first layer's aggregation exact: it has a history of embeddings, not of features",
                "--first-layer batch", "leave it out");
  if (options.method.method == Method::kVrGcn && options.model.input_projection)
    throw Error("vrgcn takes the first layer's aggregation exact, which an input projection does not allow",
                "--input-projection", "leave it out, or use another --method");
  if (options.method.first_layer == FirstLayer::kBatch && !options.model.input_projection &&
      !data.features.is_dense() && options.model.dropout > 0 && options.model.dropout_place == DropoutPlace::kAfter)
    throw Error("on sparse features, a first layer that aggregates by the batch's links cannot drop after aggregation",
                "--first-layer batch", "--dropout-place before, or --dropout 0");
}

// The checkpoint knows what it was trained with; config.toml, where the options come from, may have been edited.
void require_same_options(const RunDirectory& run, RunOptions options) {
  std::error_code problem;
  if (!fs::exists(last_checkpoint(run.path()), problem)) return;
  RunOptions saved = load_model(last_checkpoint(run.path())).options;
  OptionList before, now;
  saved.list_options(before);
  options.list_options(now);
  for (const Option& option : now.all())
    if (const std::string then = before.find(option.name())->text();
        then != option.text() && !options.may_change(option))
      throw Error(fmt::format("{} is {}, but the checkpoint was trained with {}", option.name(), option.text(), then),
                  run.config_file().string(),
                  fmt::format("set it back to {}, or train again with another --run", then));
}

std::string hash_partition(const ClusterLayout& layout) {
  Hasher hasher;
  hasher.add(layout.data.content_hash);
  hasher.add(layout.order.data(), layout.order.span().size_bytes());
  hasher.add(layout.cluster_offsets.data(), layout.cluster_offsets.span().size_bytes());
  return hasher.digest128_hex();
}

ColumnScaling choose_scaling(const RunOptions& options, const Dataset& data) {
  if (options.train.standardise && options.train.normalise_rows)
    throw Error("columns and rows cannot both be scaled", "--normalise-rows", "leave it or --standardise out");
  ColumnScaling scaling = options.train.standardise ? measure_columns(data) : ColumnScaling();
  scaling.rows = options.train.normalise_rows;
  return scaling;
}

ClusterBatchOptions batch_options(const RunOptions& options, uint32_t num_clusters) {
  return {.clusters_per_batch = options.train.clusters_per_batch(num_clusters),
          .draw = options.train.draw,
          .normalisation = options.model.layer_normalisation(),
          .aggregates_input = options.batch_aggregates_input(),
          .seed = options.train.seed};
}

// The end of the progress line.
std::string describe(const EpochRecord& record, const TrainingState& state) {
  std::string text = fmt::format("loss {:.4f}", record.loss);
  if (state.standing.best_epoch > 0)
    text += fmt::format("  best validation F1 {:.2f} %", 100 * state.standing.best_score);
  return text;
}

// Batches whose neighbourhoods fill the graph: said once, before the time is spent.
void note_expansion(const Batch& batch, uint32_t batches, uint32_t layers, uint64_t nodes) {
  constexpr uint64_t kManyTimes = 20;
  const uint64_t times = batch.num_embeddings(layers) * batches / std::max<uint64_t>(1, nodes * layers);
  if (times >= kManyTimes)
    log::note(
        "each batch reaches {} of {} nodes: an epoch computes {} times as much as --method full-batch; "
        "a --fanout or a larger --batch-nodes makes it less",
        format_count(batch.inputs.size()), format_count(nodes), format_count(times));
}

// Moments of older checkpoints, which nothing names any more.
void remove_other_optimisers(const fs::path& run, const std::string& kept) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("optimiser-") && name.ends_with(".safetensors") && name != kept)
      fs::remove(entry.path(), ignored);
}

// The same file under a second name, which stays when the first is replaced.
void keep_link(const fs::path& file, const fs::path& name) {
  std::error_code problem;
  fs::remove(name, problem);
  fs::create_hard_link(file, name, problem);
  if (problem) fs::copy_file(file, name, problem);  // a file system without links
  if (problem) throw Error(fmt::format("cannot write: {}", problem.message()), name.string());
}

nlohmann::json to_record(const EpochRecord& record) {
  nlohmann::json json = {{"epoch", record.epoch},
                         {"loss", record.loss},
                         {"lr", record.learning_rate},
                         {"seconds", record.seconds},
                         {"embeddings", record.work.embeddings},
                         {"utilisation", record.work.utilisation()},
                         {"preparing_seconds", record.work.preparing_seconds}};
  if (record.validation) {
    json["validation"] = *record.validation;
    json["validation_seconds"] = record.validation_seconds;
  }
  json["batch_seconds"] = record.batch_seconds;
  json["memory"] = {
      {"resident", record.memory.rss}, {"anonymous", record.memory.anonymous}, {"peak", record.memory.peak_rss}};
  return json;
}

template <class Work>
auto timed(StageTimes& stages, const char* stage, Work&& work) {
  const Timer timer;
  auto made = work();
  stages.add(stage, timer.seconds());
  return made;
}

}  // namespace

Trainer::Trainer(const Store& store, const RunOptions& options, RunDirectory run)
    : budget_(options.memory.budget()),
      store_(store),
      options_(options),
      run_(std::move(run)),
      data_(store.dataset()),
      layout_((require_trainable(data_), require_possible(options, data_), require_same_options(run_, options),
               timed(stages_, "partition",
                     [&] {
                       PartitionOptions partition = options.method.partition(options.partition);
                       require_memory_for_model(options, data_, budget_);
                       partition.take_memory(budget_, store, [&] { return forecast_training_memory(options, data_); });
                       return ensure_partition(store, partition).layout;
                     }))),
      trained_on_{data_.path.empty() ? std::string() : fs::absolute(store.path()).string(),
                  data_.name,
                  data_.content_hash,
                  hash_partition(layout_),
                  data_.class_names,
                  data_.features.kind() == FeatureMatrix::Kind::kIdentity,
                  data_.feature_names,
                  data_.encoding},
      scaling_(choose_scaling(options, data_)),
      training_(timed(stages_, "A·X", [&] { return prepare_training(); })),
      batches_(make_batch_source(options.method, layout_, batch_options(options, layout_.num_clusters()),
                                 options.model.layers)),
      model_((prepare_blocks(), plan_memory(), Model(options.model, shape_of(data_), options.train.seed))),
      optimiser_(make_optimiser(options.optimiser, model_)) {
  model_.reserve(batches_->limits());
  if (blocks_) model_.reserve(blocks_->limits());
  if (batches_->has_remainders()) history_.emplace(model_, layout_.data.num_nodes());
  std::error_code problem;
  const bool is_new = !fs::exists(last_checkpoint(run_.path()), problem);
  const bool goes_on = !is_new && resume_from_checkpoint();
  describe_run();  // only now: a refused run is left as it was
  if (is_new || goes_on) save();
  take_back_regular_best();
}

void Trainer::prepare_blocks() {
  if (options_.train.evaluation.kind != EvaluationKind::kBlocks || data_.split_sizes()[1] == 0) return;
  const Timer timer;
  release_pages();
  blocks_.emplace(store_, options_, scaling_, options_.train.evaluation.blocks, budget_);
  stages_.add("partition", timer.seconds());
}

// config.toml and environment.json; a resumed run writes what holds from now on.
void Trainer::describe_run() {
  nlohmann::json environment = describe_environment();
  environment["store"] = trained_on_;
  if (options_.memory.given()) environment["memory_budget_bytes"] = budget_;
  write_file_atomically(run_.environment_file(), to_text(environment, 2) + "\n");
  std::error_code ignored;
  fs::remove(run_.result_file(), ignored);  // of the run before it went on
  OptionList list;
  options_.list_options(list);
  write_file_atomically(run_.config_file(), list.to_toml());  // last: it is what makes the folder a run
}

// How the graph was cut, for the report.
void Trainer::record_clusters() const {
  std::error_code ignored;
  if (!options_.method.uses_clusters() || fs::exists(run_.clusters_file(), ignored)) return;
  const uint32_t per_batch = options_.train.clusters_per_batch(layout_.num_clusters());
  write_file_atomically(run_.clusters_file(),
                        to_text(describe_clusters(layout_, per_batch, options_.train.seed)) + "\n");
}

// Whether there are epochs left.
bool Trainer::resume_from_checkpoint() {
  const SavedModel saved = load_model(last_checkpoint(run_.path()));
  const auto refuse = [&](const std::string& what, const std::string& where) -> void {
    throw Error(what + " since this run began", where, "train again with another --run");
  };
  if (saved.trained_on.content_hash != trained_on_.content_hash)
    refuse("the graph store has changed", store_.path().string());
  if (saved.trained_on.partition_hash != trained_on_.partition_hash)
    refuse("the partition has changed", layout_.path.string());
  if (options_.train.epochs < saved.state.epoch)
    throw Error(fmt::format("the run has {} epochs already", saved.state.epoch), "--epochs", "more, or another --run");
  std::copy(saved.model->values().begin(), saved.model->values().end(), model_.values().begin());
  load_optimiser(run_.path(), saved, model_, *optimiser_, history());
  state_ = saved.state;
  seconds_before_ = state_.total_seconds;
  for (const auto& [stage, seconds] : state_.stages) stages_.add(stage, seconds);
  run_.drop_metrics_from(state_.epoch + 1);
  const bool goes_on = state_.epoch < options_.train.epochs;
  if (goes_on) state_.standing = state_.regular;
  return goes_on;
}

// A run of more epochs goes on as if it had always been so long: without the validation of its old last epoch.
void Trainer::take_back_regular_best() {
  const fs::path file = regular_best_checkpoint(run_.path());
  std::error_code problem;
  if (fs::exists(file, problem) && load_model(file).state.standing.best_epoch == state_.standing.best_epoch)
    fs::rename(file, best_checkpoint(run_.path()), problem);
  if (problem) throw Error(fmt::format("cannot rename: {}", problem.message()), file.string());
}

TrainingSummary Trainer::run(const std::function<bool(const EpochRecord&)>& on_epoch) {
  record_clusters();
  const uint32_t epochs = options_.train.epochs, batches = batches_->batches_per_epoch();
  if (state_.epoch < epochs && !out_of_patience()) {
    const uint64_t done = uint64_t{state_.epoch} * batches + state_.batch;
    Progress progress("Training", uint64_t{epochs} * batches, "steps");
    progress.start_at(done);
    begin_measuring();
    BatchQueue queue(*batches_, state_.epoch, epochs, state_.batch, kBatchesAhead);
    while (state_.epoch < epochs && !out_of_patience()) {
      run_steps(queue, progress);
      check_memory();
      const EpochRecord record = end_epoch();
      progress.set_note(describe(record, state_));
      if (on_epoch && !on_epoch(record)) break;
    }
  }
  save();
  try {
    return summarise();
  } catch (const Interrupted&) {
    throw Interrupted(
        fmt::format("training is done and saved; the test was stopped. To test:\n  clustergcn evaluate {}",
                    shell_word(run_.path().string())));
  }
}

void Trainer::run_steps(BatchQueue& queue, Progress& progress) {
  const double learning_rate = options_.train.learning_rate_at(state_.epoch);
  while (state_.batch < batches_->batches_per_epoch()) {
    const Timer timer;
    const Batch& batch = queue.next();
    state_.epoch_waited += timer.seconds();
    take_step(batch, learning_rate);
    state_.epoch_seconds += timer.seconds();
    progress.advance();
    if (interrupted()) stop_interrupted();
    const uint32_t wait = options_.train.checkpoint_seconds;
    if (wait > 0 && since_save_.seconds() > wait) save();
  }
}

void Trainer::take_step(const Batch& batch, double learning_rate) {
  CGCN_CHECK(batch.epoch == state_.epoch && batch.index == state_.batch);
  if (state_.step == 0)
    note_expansion(batch, batches_->batches_per_epoch(), model_.num_layers(), layout_.data.num_nodes());
  const ModelInput whole{training_.x, training_.aggregated, layout_.data.labels, history()};
  const BatchArrays* own = batch.arrays;
  const StepResult result = model_.compute_gradients(
      batch, own == nullptr ? whole : ModelInput{*own->x, *own->aggregated, *own->labels, nullptr},
      options_.train.seed);
  const double norm = gradient_norm(model_);
  if (!std::isfinite(result.loss) || !std::isfinite(norm)) fail_not_finite(result.loss, norm);
  const double clip = options_.train.clip;
  const double shrink = clip > 0 && norm > clip ? clip / norm : 1;
  optimiser_->step(model_, static_cast<float>(learning_rate), static_cast<float>(shrink));
  state_.loss_sum += result.loss * result.labelled;
  state_.labelled += result.labelled;
  const uint32_t layers = model_.num_layers();
  state_.epoch_work.add(
      {batch.num_embeddings(layers), batch.num_links(layers), batch.num_sources(layers), batch.seconds});
  ++state_.batch;
  ++state_.step;
}

void Trainer::fail_not_finite(double loss, double gradient_norm) {
  save_best();       // good epochs before this one are not lost
  check_mappings();  // a file that was overwritten is the better explanation
  const std::string gradient = first_not_finite(model_);
  throw Error(
      fmt::format(
          "the {} became {} in epoch {}, step {}{}", std::isfinite(loss) ? "gradient" : "loss",
          std::isnan(std::isfinite(loss) ? gradient_norm : loss) ? "NaN" : "infinite", state_.epoch + 1,
          state_.batch + 1,
          gradient.empty() ? "" : fmt::format(" (the gradient of {} is the first that is not finite)", gradient)),
      run_.path().string(),
      "a smaller --lr, --clip 1, --standardise, or --layer-norm; and look for NaN in the features");
}

// Validates if it is due, writes the epoch down, and moves on to the next.
EpochRecord Trainer::end_epoch() {
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.loss = state_.labelled > 0 ? state_.loss_sum / static_cast<double>(state_.labelled) : 0;
  record.learning_rate = options_.train.learning_rate_at(state_.epoch);
  record.seconds = state_.epoch_seconds;
  record.batch_seconds = state_.epoch_waited;
  record.work = state_.epoch_work;
  const uint32_t interval = options_.train.evaluation_interval(data_.num_nodes(), layout_.data.num_nodes());
  const bool due = record.epoch % interval == 0 || record.epoch == options_.train.epochs;
  if (due && data_.split_sizes()[1] > 0) {
    const Timer timer;
    try {
      record.validation = evaluate(options_.train.evaluation.kind, false).validation.scores();
    } catch (const Interrupted&) {
      stop_interrupted();  // the epoch's steps are done and kept; a resumed run begins with this validation
    }
    record.validation_seconds = timer.seconds();
    keep_if_best(*record.validation, record.epoch % interval == 0);
  }
  check_mappings();
  record.memory = memory_figures();
  record.memory.peak_rss = peak_memory();
  run_.append_metrics(to_record(record));
  ++state_.epoch;
  state_.batch = 0;
  state_.loss_sum = 0;
  state_.labelled = 0;
  state_.epoch_waited = 0;
  state_.train_seconds += std::exchange(state_.epoch_seconds, 0);
  state_.work.add(std::exchange(state_.epoch_work, {}));
  if (options_.train.checkpoint_seconds == 0) save();
  return record;
}

// Better: a higher micro F1; at the same F1 a lower loss. Not regular: only because the run ends here.
void Trainer::keep_if_best(const Scores& validation, bool regular) {
  Standing& best = state_.standing;
  const bool better = validation.micro_f1 > best.best_score ||
                      (validation.micro_f1 == best.best_score && validation.loss < best.best_loss);
  if (!better || !std::isfinite(validation.loss)) {
    ++best.since_best;
  } else {
    if (!regular && best.best_epoch > 0) {
      save_best();
      keep_link(best_checkpoint(run_.path()), regular_best_checkpoint(run_.path()));
    }
    best = {validation.micro_f1, validation.loss, state_.epoch + 1, 0};
    best_values_ = Buffer<float>(model_.values().size());
    std::copy(model_.values().begin(), model_.values().end(), best_values_.begin());
  }
  if (regular) state_.regular = best;
  if (best.best_epoch == state_.epoch + 1) best_state_ = state_;
}

// The peak counts anew from here, so that the steps are measured apart from the partition and A·X.
void Trainer::begin_measuring() {
  peak_before_ = memory_figures().peak_rss;
  reset_peak_rss();
  measures_training_ = true;
}

void Trainer::measure_training() {
  if (measures_training_) state_.training_peak = std::max(state_.training_peak, memory_figures().peak_rss);
}

Evaluation Trainer::evaluate(EvaluationKind kind, bool show_progress) {
  measure_training();
  measures_training_ = false;
  if (kind == EvaluationKind::kBlocks) {
    if (training_memory_ + blocks_->mapped_bytes() > budget_) release_pages();
    return blocks_->evaluate(model_);
  }
  return evaluate_exactly_in_budget(show_progress);
}

void Trainer::save_best() {
  if (best_values_.empty()) return;
  save_model(best_checkpoint(run_.path()), options_, model_, best_values_, scaling_, trained_on_, best_state_, "");
  best_values_ = {};
}

void Trainer::save() {
  const Timer timer;
  check_mappings();
  state_.total_seconds = seconds_before_ + session_.seconds();
  state_.stages = stages_.stages();
  measure_training();
  save_best();
  const std::string optimiser = fmt::format("optimiser-{}.safetensors", state_.step);
  save_optimiser(run_.path() / optimiser, model_, *optimiser_, history());
  save_model(last_checkpoint(run_.path()), options_, model_, model_.values(), scaling_, trained_on_, state_, optimiser);
  remove_other_optimisers(run_.path(), optimiser);
  stages_.add("checkpoints", timer.seconds());
  since_save_.restart();
}

void Trainer::stop_interrupted() {
  save();
  throw Interrupted(
      fmt::format("stopped in epoch {} of {}; everything is saved. To go on:\n  clustergcn train --run {} --resume",
                  state_.epoch + 1, options_.train.epochs, shell_word(run_.path().string())));
}

// Tests the model that is kept: the best on validation, or the last.
TrainingSummary Trainer::summarise() {
  const bool best = options_.train.keep == KeptModel::kBest && state_.standing.best_epoch > 0;
  if (best) {
    const SavedModel saved = load_model(best_checkpoint(run_.path()));
    std::copy(saved.model->values().begin(), saved.model->values().end(), model_.values().begin());
  }
  TrainingSummary summary;
  summary.run = run_.path();
  summary.epochs = state_.epoch;
  summary.kept_epoch = best ? state_.standing.best_epoch : state_.epoch;
  summary.stopped_early = state_.epoch < options_.train.epochs;
  summary.clusters = layout_.num_clusters();
  summary.per_batch = options_.train.clusters_per_batch(layout_.num_clusters());
  summary.weights = model_.num_weights();
  summary.train_seconds = state_.train_seconds;
  summary.evaluation = timed(stages_, "test", [&] { return evaluate(EvaluationKind::kExact, true); });
  summary.total_seconds = seconds_before_ + session_.seconds();
  summary.work = state_.work;
  const CsrGraph& graph = layout_.data.graph;
  summary.graph_bytes = graph.offsets().size_bytes() + graph.targets().size_bytes() + graph.weights().size_bytes();
  summary.features_bytes = training_.x.stored_bytes() + training_.aggregated.stored_bytes();
  summary.history_bytes = history_ ? history_->bytes() : 0;
  summary.model_bytes = model_.values().size_bytes() + model_.gradients().size_bytes() + optimiser_->bytes();
  summary.workspace_bytes = model_.workspace_bytes();
  summary.peak_memory = std::max(peak_memory(), state_.training_peak);  // a resumed run may have been smaller
  summary.training_peak = state_.training_peak;
  summary.stages = all_stages(summary.total_seconds);
  write_file_atomically(run_.result_file(), to_text(describe_result(summary, data_)) + "\n");
  return summary;
}

// The epochs' times are summed from metrics.jsonl, so that those of earlier sessions count.
StageTimes Trainer::all_stages(double total_seconds) const {
  double waited = 0, validation = 0;
  for (const nlohmann::json& record : read_metrics(run_.metrics_file())) {
    waited += record.value("batch_seconds", 0.0);
    validation += record.value("validation_seconds", 0.0);
  }
  StageTimes stages = stages_;
  stages.add("waiting for batches", waited);
  stages.add("steps", std::max(0.0, state_.train_seconds - waited));
  stages.add("validation", validation);
  double known = 0;
  for (const auto& [stage, seconds] : stages.stages()) known += seconds;
  stages.add("other", std::max(0.0, total_seconds - known));
  return stages;
}

}  // namespace cgcn
