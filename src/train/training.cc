#include "train/training.h"

#include <algorithm>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/log.h"
#include "common/mapping_faults.h"
#include "common/progress.h"
#include "train/embedding_picture.h"
#include "train/run_records.h"
#include "train/selection.h"

namespace cgcn {
namespace {

// A refused run is refused before its graph is partitioned.
TrainingPlan plan_run(const Store& store, const RunOptions& options, const RunFiles& files, dist::Group& group) {
  group.require_same("the content of the graph store " + store.path().string(), store.dataset().content_hash,
                     "copy it again to the hosts where it differs");
  return group.together([&] {
    if (group.is_first()) RunCheckpoints::require_same_options(files, options);
    return plan_training(store, options, group.ranks_on_this_host(), group.size());
  });
}

void warn_of_one_class(const Dataset& data) {
  if (data.labels.multi_label() || data.labels.regression()) return;
  int32_t only = -1;
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (!data.is_trained_on(v)) continue;
    if (only >= 0 && data.labels.class_of(v) != only) return;
    only = data.labels.class_of(v);
  }
  if (only >= 0)
    log::warn("all labelled training nodes are of class {}: there is nothing to tell apart",
              data.class_name(static_cast<uint32_t>(only)));
}

// What is kept in the store is made by one rank for each disk before all use it.
TrainingInput prepare_run(const TrainingPlan& plan, StageTimes& stages, dist::Group& group) {
  if (group.size() > 1) {
    if (group.is_first())
      log::note("{} while the first prepares the graph",
                group.size() == 2 ? "1 process waits" : fmt::format("{} processes wait", group.size() - 1));
    StageTimes waited;
    waited.time(Stage::kPartition, [&] {
      group.in_turn([&] {
        StageTimes part_of_the_wait;
        if (group.place_on_this_host() == 0) prepare_kept_files(plan, part_of_the_wait);
      });
    });
    stages.add(waited.list());
  }
  if (group.is_first() && plan.options.train.normalise_rows && has_negative_values(plan.data.features))
    log::warn(
        "--normalise-rows divides each feature row by its sum, and some values are negative: a sum near 0 gives "
        "huge values; {}",
        plan.data.features.is_dense() ? "try --standardise instead" : "leave it out");
  if (group.is_first()) warn_of_one_class(plan.data);
  return prepare_training(plan, stages);
}

// The end of the progress line.
std::string describe(const EpochRecord& record, const TrainingState& state, SelectBy by) {
  std::string text = fmt::format("loss {:.4f}", record.loss);
  if (state.standing.best_epoch > 0) text += "  best " + show_selection(state.standing.best_score, by);
  return text;
}

}  // namespace

Training::Training(const Store& store, const RunOptions& options, RunDirectory run, dist::Group& group,
                   StageTimes before)
    : group_(group),
      run_(std::move(run)),
      figures_(std::move(before)),
      plan_(plan_run(store, options, run_.files(), group)),
      input_(prepare_run(plan_, figures_.stages(), group)),
      learner_(plan_, input_),
      checkpoints_(run_.files(), {options, input_.scaling, describe_data(plan_, input_), input_.target}, learner_,
                   group.is_first()),
      evaluation_(plan_, input_, learner_.model, group) {
  require_possible_in_group();
  begin();
}

void Training::require_possible_in_group() const {
  if (group_.size() == 1) return;
  group_.require_same("the partition " + input_.layout.path.string(), checkpoints_.origin().trained_on.partition_hash,
                      "delete it on the hosts where it differs: it is made again");
  group_.require_same("what --class-weights names", checkpoints_.origin().trained_on.class_weights_hash,
                      "copy the file to the hosts where it differs");
  if (learner_.history)
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
    learner_.share(group_);
    figures_.resume(state());
    group_.on_first([&] { run_.drop_metrics_from(state().epoch + 1); });
  }
  group_.on_first([&] { record_run(run_.files(), plan_, checkpoints_.origin().trained_on); });
  if (is_new || state().epoch < plan_.options.train.epochs) save();
  group_.on_first([&] { checkpoints_.take_back_best(); });
}

bool Training::has_epochs_left() const {
  const TrainOptions& train = plan_.options.train;
  return state().epoch < train.epochs && (train.patience == 0 || state().standing.since_best < train.patience);
}

TrainingSummary Training::run(const std::function<bool(const EpochRecord&)>& on_epoch) {
  try {
    group_.on_first([&] { record_clusters(run_.files(), plan_, input_); });
    if (has_epochs_left()) loop(on_epoch);
    save();
  } catch (...) {
    if (run_.is_new() && state().step == 0) run_.discard();  // nothing was learnt: the next try finds the place free
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
  plan_.store.release_pages();  // what was read to describe the run, and is in no plan
  input_.release_pages();
  figures_.begin_steps();
  const ModelInput input{input_.features.x, input_.features.aggregated, input_.layout.data.labels,
                         learner_.kept_history()};
  TrainingLoop loop(train, *input_.batches, input, learner_, group_);
  const uint64_t steps = loop.steps_per_epoch();
  Progress progress("Training", train.epochs * steps, "epochs", steps);
  progress.start_at(state().epoch * steps + state().batch / train.batches_per_step);
  const auto ask = [&]() -> StepSignal {
    const uint32_t seconds = train.checkpoint_seconds;
    return {interrupted(), seconds > 0 && checkpoints_.seconds_since_save() > seconds};
  };
  const auto after_step = [&](StepSignal signal) {
    progress.advance();
    if (signal.stop) stop_interrupted();
    if (signal.save) save();
  };
  const double seconds_before = state().train_seconds;
  while (has_epochs_left()) {
    try {
      loop.run_epoch(ask, after_step);
    } catch (const NotFinite& problem) {
      fail_not_finite(problem);
    }
    check_memory();
    const EpochRecord record = end_epoch();
    progress.set_note(describe(record, state(), selection_of(train.select_by, plan_.data.labels)));
    if (on_epoch && !on_epoch(record)) break;
  }
  figures_.count_steps(state().train_seconds - seconds_before, loop.traffic());
}

void Training::fail_not_finite(const NotFinite& problem) {
  group_.on_first([&] { checkpoints_.save_best(); });  // good epochs before this one are not lost
  group_.together([] { check_mappings(); });           // a file that was overwritten is the better explanation
  const std::string first =
      problem.parameter.empty()
          ? ""
          : fmt::format(" (the gradient of {} is the first that is not finite)", problem.parameter);
  const uint32_t step = state().batch / plan_.options.train.batches_per_step + 1;
  throw dist::GroupError(fmt::format("{} in epoch {}, step {}{}", problem.what(), state().epoch + 1, step, first),
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
    if (rss > plan_.budget) refuse_budget(rss, fmt::format("what the steps of epoch {} took", state().epoch + 1));
  });
}

// Validates if it is due, writes the epoch down, and moves on to the next.
EpochRecord Training::end_epoch() {
  EpochRecord record;
  record.epoch = state().epoch + 1;
  record.loss = state().labelled > 0 ? state().loss_sum / static_cast<double>(state().labelled) : 0;
  record.learning_rate = plan_.options.train.learning_rate_at(state().epoch);
  record.seconds = state().epoch_seconds;
  record.batch_seconds = state().epoch_waited;
  record.work = state().epoch_work;
  validate(record);
  group_.together([] { check_mappings(); });
  record.memory = memory_figures();
  record.memory.peak_rss = figures_.peak_memory();
  group_.on_first([&] { run_.append_metrics(describe_epoch(record)); });
  learner_.state.end_epoch();
  if (plan_.options.train.checkpoint_seconds == 0) save();
  return record;
}

void Training::validate(EpochRecord& record) {
  const TrainOptions& train = plan_.options.train;
  const uint32_t interval = train.evaluation_interval(plan_.data.num_nodes(), input_.layout.data.num_nodes());
  const bool regular = record.epoch % interval == 0;
  if (plan_.data.split_sizes()[1] == 0 || !(regular || record.epoch == train.epochs)) return;
  const Timer timer;
  figures_.end_steps(learner_.state);
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
    figures_.write_to(learner_.state);
    group_.on_first([&] { checkpoints_.save(); });
  });
}

void Training::stop_interrupted() {
  save();
  throw dist::GroupInterrupted(
      fmt::format("stopped in epoch {} of {}; everything is saved. To continue:\n  clustergcn train --run {} --resume",
                  state().epoch + 1, plan_.options.train.epochs, shell_word(run_.path().string())));
}

// The test, and a picture of the last hidden layer from the same pass.
Evaluation Training::test_and_draw_embeddings() {
  figures_.end_steps(learner_.state);
  RowSample hidden = sample_tested_nodes(plan_.data, learner_.model.layer_width(learner_.model.num_layers() - 1));
  Evaluation evaluation = evaluation_.test(&hidden);
  group_.on_first([&] { record_embeddings(run_.files(), hidden, plan_.data); });
  return evaluation;
}

// Tests the model that is kept: the best on validation, or the last.
TrainingSummary Training::summarise() {
  const TrainOptions& train = plan_.options.train;
  const ClusterLayout& layout = input_.layout;
  TrainingSummary summary;
  summary.run = run_.path();
  summary.epochs = state().epoch;
  summary.selected_by = selection_of(train.select_by, plan_.data.labels);
  group_.on_first([&] { summary.kept_epoch = checkpoints_.load_kept(); });
  summary.kept_epoch = group_.broadcast_value(summary.kept_epoch);
  group_.broadcast(std::as_writable_bytes(learner_.model.values()));
  summary.stopped_early = state().epoch < train.epochs;
  summary.weighted_classes = train.class_weights != "none";
  summary.clusters = layout.num_clusters();
  summary.per_batch = train.clusters_per_batch(layout.num_clusters());
  summary.weights = learner_.model.num_weights();
  summary.train_seconds = state().train_seconds;
  figures_.stages().time(Stage::kTest, [&] { summary.evaluation = test_and_draw_embeddings(); });
  group_.on_first([&] {
    const OutputRule& rule = summary.evaluation->rule;
    if (rule.temperature || !rule.thresholds.empty()) checkpoints_.save_rule(rule);
  });
  summary.total_seconds = figures_.total_seconds();
  summary.work = state().work;
  summary.graph_bytes = layout.data.graph.stored_bytes();
  summary.features_bytes = input_.features.x.stored_bytes() + input_.features.aggregated.stored_bytes();
  summary.history_bytes = learner_.history ? learner_.history->bytes() : 0;
  summary.model_bytes =
      learner_.model.values().size_bytes() + learner_.model.gradients().size_bytes() + learner_.optimiser->bytes();
  summary.workspace_bytes = learner_.model.workspace_bytes();
  summary.peak_memory = std::max(figures_.peak_memory(), state().training_peak);  // a resumed run may have been smaller
  summary.training_peak = state().training_peak;
  summary.batches_per_step = train.batches_per_step;
  if (group_.size() > 1) {
    RankFigures own = figures_.rank();
    own.peak_memory = summary.peak_memory;
    summary.ranks = group_.all_gather_values(own);
    for (uint32_t r = 0; r < group_.size(); ++r) summary.hosts.push_back(group_.host(r));
  }
  group_.on_first([&] {
    summary.stages = recorded_stages(run_.files(), figures_, summary.train_seconds, summary.total_seconds);
    record_result(run_.files(), summary, plan_.data);
  });
  return summary;
}

}  // namespace cgcn
