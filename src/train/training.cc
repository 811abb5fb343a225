#include "train/training.h"

#include <algorithm>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/log.h"
#include "common/mapping_faults.h"
#include "partition/link_picture.h"
#include "train/embedding_picture.h"
#include "train/result.h"
#include "train/selection.h"

namespace cgcn {
namespace {

// A refused run is refused before its graph is partitioned.
TrainingPlan plan_run(const Store& store, const RunOptions& options, const RunFiles& files, dist::Group& group) {
  group.require_same("the content of the graph store " + store.path().string(), store.dataset().content_hash,
                     "copy it again to the hosts where it differs");
  return group.together([&] {
    if (group.is_first()) RunCheckpoints::require_same_options(files, options);
    TrainingPlan plan = plan_training(store, options, group.ranks_on_this_host());
    plan.ranks = group.size();
    return plan;
  });
}

// What is kept in the store is made by one rank for each disk before all use it.
TrainingInput prepare_run(const TrainingPlan& plan, StageTimes& stages, dist::Group& group) {
  if (group.size() > 1) {
    if (group.is_first()) log::note("{} processes wait while the first prepares the graph", group.size() - 1);
    StageTimes waited;
    waited.time(Stage::kPartition, [&] {
      group.in_turn([&] {
        if (group.place_on_this_host() == 0) prepare_kept_files(plan);
      });
    });
    stages.add(waited.list());
  }
  return prepare_training(plan, stages);
}

// The end of the progress line.
std::string describe(const EpochRecord& record, const TrainingState& state, SelectBy by) {
  std::string text = fmt::format("loss {:.4f}", record.loss);
  if (state.standing.best_epoch > 0) text += "  best " + show_selection(state.standing.best_score, by);
  return text;
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

}  // namespace

Training::Training(const Store& store, const RunOptions& options, RunDirectory run, dist::Group& group)
    : group_(group),
      run_(std::move(run)),
      plan_(plan_run(store, options, run_.files(), group)),
      input_(prepare_run(plan_, figures_.stages(), group)),
      model_(options.model, shape_of(plan_.data), options.train.seed),
      optimiser_(make_optimiser(options.optimiser, model_)),
      history_(input_.batches->has_remainders()
                   ? std::optional<EmbeddingHistory>(std::in_place, model_, input_.layout.data.num_nodes())
                   : std::nullopt),
      checkpoints_(run_.files(), {options, input_.scaling, describe_data(plan_, input_), input_.target}, model_,
                   *optimiser_, history_ ? &*history_ : nullptr, state_, group.is_first()),
      evaluation_(plan_, input_, model_, group) {
  require_possible_in_group();
  if (plan_.data.labels.regression()) model_.set_regression(plan_.options.train.loss, input_.target);
  if (!input_.class_weights.empty()) model_.weigh_classes(input_.class_weights);
  model_.reserve(input_.batches->limits());
  if (input_.cluster_evaluator) model_.reserve(input_.cluster_evaluator->limits());
  begin();
}

void Training::require_possible_in_group() const {
  if (group_.size() == 1) return;
  group_.require_same("the partition " + input_.layout.path.string(), checkpoints_.origin().trained_on.partition_hash,
                      "delete it on the hosts where it differs: it is made again");
  group_.require_same("what --class-weights names", checkpoints_.origin().trained_on.class_weights_hash,
                      "copy the file to the hosts where it differs");
  if (history_)
    throw dist::GroupError("vrgcn keeps a history of embeddings that every batch changes: it runs in one process",
                           "--method vrgcn", "leave mpirun out, or use another --method");
  const uint32_t slots = plan_.options.train.batches_per_step;
  if (group_.is_first() && slots < group_.size())
    log::note("a step has {} of the {} batches that it would take to keep all processes busy (--batches-per-step)",
              slots, group_.size());
}

// From the checkpoint if there is one. Only then is the run described: one that is refused is left as it was.
void Training::begin() {
  const bool is_new = group_.broadcast_value(group_.is_first() && !checkpoints_.exist());
  if (!is_new) {
    group_.on_first([&] { checkpoints_.resume(input_.layout.path); });
    share_state();
    figures_.resume(state_);
    group_.on_first([&] { run_.drop_metrics_from(state_.epoch + 1); });
  }
  group_.on_first([&] { describe_run(checkpoints_.origin().trained_on); });
  if (is_new || state_.epoch < plan_.options.train.epochs) save();
  group_.on_first([&] { checkpoints_.take_back_best(); });
}

// What the first rank read from a checkpoint.
void Training::share_state() {
  if (group_.size() == 1) return;
  group_.broadcast(std::as_writable_bytes(model_.values()));
  for (const Optimiser::State& kept : optimiser_->state()) group_.broadcast(std::as_writable_bytes(kept.values));
  optimiser_->set_steps(group_.broadcast_value(optimiser_->steps()));
  state_ = parse_json(group_.broadcast(to_text(nlohmann::json(state_)))).get<TrainingState>();
}

// config.toml and environment.json; a resumed run writes what holds from now on.
void Training::describe_run(const TrainedOn& trained_on) const {
  nlohmann::json environment = describe_environment();
  environment["store"] = trained_on;
  if (plan_.options.memory.given()) environment["memory_budget_bytes"] = plan_.budget;
  const RunFiles& files = run_.files();
  write_file_atomically(files.environment(), to_text(environment, 2) + "\n");
  std::error_code ignored;
  fs::remove(files.result(), ignored);  // of the run before it was resumed
  fs::remove(files.embeddings(), ignored);
  RunOptions options = plan_.options;
  OptionList list;
  options.list_options(list);
  write_file_atomically(files.config(), list.to_toml());  // last: it is what makes the folder a run
}

// How the graph was cut, for the report.
void Training::record_clusters() const {
  std::error_code ignored;
  const RunOptions& options = plan_.options;
  if (!options.method.uses_clusters() || fs::exists(run_.files().clusters(), ignored)) return;
  const uint32_t per_batch = options.train.clusters_per_batch(input_.layout.num_clusters());
  write_file_atomically(run_.files().clusters(),
                        to_text(describe_clusters(input_.layout, per_batch, options.train.seed)) + "\n");
}

bool Training::has_epochs_left() const {
  const TrainOptions& train = plan_.options.train;
  return state_.epoch < train.epochs && (train.patience == 0 || state_.standing.since_best < train.patience);
}

TrainingSummary Training::run(const std::function<bool(const EpochRecord&)>& on_epoch) {
  try {
    group_.on_first([&] { record_clusters(); });
    if (has_epochs_left()) loop(on_epoch);
    save();
  } catch (...) {
    if (run_.is_new() && state_.step == 0) run_.discard();  // nothing was learnt: the next try finds the place free
    throw;
  }
  try {
    return summarise();
  } catch (const Interrupted&) {
    throw dist::GroupInterrupted(
        fmt::format("training is done and saved; the test was stopped. To test:\n  clustergcn evaluate {}",
                    shell_word(run_.path().string())));
  }
}

void Training::loop(const std::function<bool(const EpochRecord&)>& on_epoch) {
  const TrainOptions& train = plan_.options.train;
  figures_.begin_steps();
  const ModelInput input{input_.features.x, input_.features.aggregated, input_.layout.data.labels,
                         history_ ? &*history_ : nullptr};
  TrainingLoop loop(train, *input_.batches, input, model_, *optimiser_, state_, group_);
  const uint64_t steps = loop.steps_per_epoch();
  Progress progress("Training", train.epochs * steps, "epochs", steps);
  progress.start_at(state_.epoch * steps + state_.batch / train.batches_per_step);
  const auto ask = [&]() -> StepSignal {
    const uint32_t seconds = train.checkpoint_seconds;
    return {interrupted(), seconds > 0 && checkpoints_.seconds_since_save() > seconds};
  };
  const auto after_step = [&](StepSignal signal) {
    progress.advance();
    if (signal.stop) stop_interrupted();
    if (signal.save) save();
  };
  const double seconds_before = state_.train_seconds;
  while (has_epochs_left()) {
    try {
      loop.run_epoch(ask, after_step);
    } catch (const NotFinite& problem) {
      fail_not_finite(problem);
    }
    check_memory();
    const EpochRecord record = end_epoch();
    progress.set_note(describe(record, state_, selection_of(train.select_by, plan_.data.labels)));
    if (on_epoch && !on_epoch(record)) break;
  }
  const dist::Traffic& traffic = loop.traffic();
  steps_ = {state_.train_seconds - seconds_before - traffic.waiting - traffic.moving, traffic.waiting, traffic.moving,
            traffic.bytes_sent};
}

void Training::fail_not_finite(const NotFinite& problem) {
  group_.on_first([&] { checkpoints_.save_best(); });  // good epochs before this one are not lost
  group_.together([] { check_mappings(); });           // a file that was overwritten is the better explanation
  const std::string first =
      problem.parameter.empty()
          ? ""
          : fmt::format(" (the gradient of {} is the first that is not finite)", problem.parameter);
  const uint32_t step = state_.batch / plan_.options.train.batches_per_step + 1;
  throw dist::GroupError(fmt::format("{} in epoch {}, step {}{}", problem.what(), state_.epoch + 1, step, first),
                         run_.path().string(),
                         "a smaller --lr, --clip 1, --standardise, or --layer-norm; and look for NaN in the features");
}

// If nobody could plan the workspace, it is compared with the budget once it is there. Not with one that nobody
// asked for: most of what is mapped would be given back if memory is short.
void Training::check_memory() {
  if (input_.bounded() || !plan_.options.memory.given()) return;
  const uint64_t rss = memory_figures().rss;
  const std::vector<char> exceeded = group_.all_gather_values(static_cast<char>(rss > plan_.budget));
  if (std::find(exceeded.begin(), exceeded.end(), 1) == exceeded.end()) return;
  save();  // so that it can continue with more
  group_.together([&] {
    if (rss > plan_.budget) refuse_budget(rss, fmt::format("what the steps of epoch {} took", state_.epoch + 1));
  });
}

// Validates if it is due, writes the epoch down, and moves on to the next.
EpochRecord Training::end_epoch() {
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.loss = state_.labelled > 0 ? state_.loss_sum / static_cast<double>(state_.labelled) : 0;
  record.learning_rate = plan_.options.train.learning_rate_at(state_.epoch);
  record.seconds = state_.epoch_seconds;
  record.batch_seconds = state_.epoch_waited;
  record.work = state_.epoch_work;
  validate(record);
  group_.together([] { check_mappings(); });
  record.memory = memory_figures();
  record.memory.peak_rss = figures_.peak_memory();
  group_.on_first([&] { run_.append_metrics(to_record(record)); });
  state_.end_epoch();
  if (plan_.options.train.checkpoint_seconds == 0) save();
  return record;
}

void Training::validate(EpochRecord& record) {
  const TrainOptions& train = plan_.options.train;
  const uint32_t interval = train.evaluation_interval(plan_.data.num_nodes(), input_.layout.data.num_nodes());
  const bool regular = record.epoch % interval == 0;
  if (plan_.data.split_sizes()[1] == 0 || !(regular || record.epoch == train.epochs)) return;
  const Timer timer;
  figures_.end_steps(state_);
  try {
    record.validation = evaluation_.validate();
  } catch (const Interrupted&) {
    stop_interrupted();  // the epoch's steps are done and kept; a resumed run begins with this validation
  }
  record.validation_seconds = timer.seconds();
  checkpoints_.keep_if_best(*record.validation, regular);
}

void Training::save() {
  figures_.stages().time(Stage::kCheckpoints, [&] {
    figures_.write_to(state_);
    group_.on_first([&] { checkpoints_.save(); });
  });
}

void Training::stop_interrupted() {
  save();
  throw dist::GroupInterrupted(
      fmt::format("stopped in epoch {} of {}; everything is saved. To continue:\n  clustergcn train --run {} --resume",
                  state_.epoch + 1, plan_.options.train.epochs, shell_word(run_.path().string())));
}

// The test, and a picture of the last hidden layer from the same pass.
Evaluation Training::test_and_draw_embeddings() {
  figures_.end_steps(state_);
  RowSample hidden = sample_tested_nodes(plan_.data, model_.layer_width(model_.num_layers() - 1));
  Evaluation evaluation = evaluation_.test(&hidden);
  if (hidden.columns > 0)
    group_.on_first([&] {
      write_file_atomically(run_.files().embeddings(), to_text(describe_embeddings(hidden, plan_.data)) + "\n");
    });
  return evaluation;
}

// Tests the model that is kept: the best on validation, or the last.
TrainingSummary Training::summarise() {
  const TrainOptions& train = plan_.options.train;
  const ClusterLayout& layout = input_.layout;
  TrainingSummary summary;
  summary.run = run_.path();
  summary.epochs = state_.epoch;
  summary.selected_by = selection_of(train.select_by, plan_.data.labels);
  group_.on_first([&] { summary.kept_epoch = checkpoints_.load_kept(); });
  summary.kept_epoch = group_.broadcast_value(summary.kept_epoch);
  group_.broadcast(std::as_writable_bytes(model_.values()));
  summary.stopped_early = state_.epoch < train.epochs;
  summary.clusters = layout.num_clusters();
  summary.per_batch = train.clusters_per_batch(layout.num_clusters());
  summary.weights = model_.num_weights();
  summary.train_seconds = state_.train_seconds;
  figures_.stages().time(Stage::kTest, [&] { summary.evaluation = test_and_draw_embeddings(); });
  group_.on_first([&] {
    const OutputRule& rule = summary.evaluation->rule;
    if (rule.temperature || !rule.thresholds.empty()) checkpoints_.save_rule(rule);
  });
  summary.total_seconds = figures_.total_seconds();
  summary.work = state_.work;
  summary.graph_bytes = layout.data.graph.stored_bytes();
  summary.features_bytes = input_.features.x.stored_bytes() + input_.features.aggregated.stored_bytes();
  summary.history_bytes = history_ ? history_->bytes() : 0;
  summary.model_bytes = model_.values().size_bytes() + model_.gradients().size_bytes() + optimiser_->bytes();
  summary.workspace_bytes = model_.workspace_bytes();
  summary.peak_memory = std::max(figures_.peak_memory(), state_.training_peak);  // a resumed run may have been smaller
  summary.training_peak = state_.training_peak;
  summary.batches_per_step = train.batches_per_step;
  if (group_.size() > 1) {
    steps_.peak_memory = summary.peak_memory;
    summary.ranks = group_.all_gather_values(steps_);
    for (uint32_t r = 0; r < group_.size(); ++r) summary.hosts.push_back(group_.host(r));
  }
  group_.on_first([&] {
    summary.stages = all_stages(summary.total_seconds);
    write_file_atomically(run_.files().result(), to_text(describe_result(summary, plan_.data)) + "\n");
  });
  return summary;
}

// The epochs' times are summed from metrics.jsonl, so that those of earlier sessions count.
StageTimes Training::all_stages(double total_seconds) const {
  double waited = 0, validation = 0;
  for (const nlohmann::json& record : read_metrics(run_.files().metrics())) {
    waited += record.value("batch_seconds", 0.0);
    validation += record.value("validation_seconds", 0.0);
  }
  StageTimes stages = figures_.stages();
  stages.add(Stage::kWaiting, waited);
  stages.add(Stage::kSteps, std::max(0.0, state_.train_seconds - waited));
  stages.add(Stage::kValidation, validation);
  stages.add(Stage::kOther, std::max(0.0, total_seconds - stages.total()));
  return stages;
}

}  // namespace cgcn
