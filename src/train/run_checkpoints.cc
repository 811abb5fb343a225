#include "train/run_checkpoints.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "common/error.h"
#include "common/mapping_faults.h"
#include "train/selection.h"

namespace cgcn {
namespace {

// Moments of older checkpoints, which nothing names any more.
void remove_other_optimisers(const RunFiles& files, const fs::path& kept) {
  std::error_code ignored;
  for (const fs::path& file : files.optimisers())
    if (file.filename() != kept.filename()) fs::remove(file, ignored);
}

// The same file under a second name, which stays when the first is replaced.
void keep_link(const fs::path& file, const fs::path& name) {
  std::error_code problem;
  fs::remove(name, problem);
  fs::create_hard_link(file, name, problem);
  if (problem) fs::copy_file(file, name, problem);  // a file system without links
  if (problem) throw Error(fmt::format("cannot write: {}", problem.message()), name.string());
}

bool is_same_validation(const Standing& a, const Standing& b) {
  return a.best_epoch == b.best_epoch && a.best_score == b.best_score && a.best_loss == b.best_loss;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const RunFiles& files, ModelOrigin origin, Learner& learner, bool writes)
    : files_(files), origin_(std::move(origin)), learner_(learner), writes_(writes) {}

void RunCheckpoints::require_same_options(const RunFiles& files, RunOptions options) {
  std::error_code problem;
  if (!fs::exists(files.last(), problem)) return;
  RunOptions saved = load_model(files.last()).options;
  OptionList before, now;
  saved.list_options(before);
  options.list_options(now);
  for (const Option& option : now.all())
    if (const std::string then = before.find(option.name())->text();
        then != option.text() && !option.may_change_on_resume())
      throw Error(fmt::format("{} is {}, but the checkpoint was trained with {}", option.name(), option.text(), then),
                  files.config().string(), fmt::format("set it back to {}, or train again with another --run", then));
}

uint64_t RunCheckpoints::planned_bytes(const RunOptions& options, const Model& model, uint64_t nodes) {
  const uint64_t last = model.value_bytes(), best = model.value_bytes();
  uint64_t optimiser = planned_optimiser_bytes(options.optimiser, model);
  if (options.method.method == Method::kVrGcn) optimiser += EmbeddingHistory::planned_bytes(model, nodes);
  const uint64_t former_and_regular_best = 2 * best;
  return 2 * (last + optimiser) + best + former_and_regular_best;
}

bool RunCheckpoints::exist() const {
  std::error_code problem;
  return fs::exists(files_.last(), problem);
}

void RunCheckpoints::resume(const fs::path& partition) {
  const SavedModel saved = load_model(files_.last());
  const auto refuse = [&](const std::string& what, const std::string& where) -> void {
    throw Error(what + " has changed since this run began", where, "train again with another --run");
  };
  const TrainedOn &before = saved.trained_on, &now = origin_.trained_on;
  if (before.content_hash != now.content_hash) refuse("the graph store", now.store);
  if (before.class_weights_hash != now.class_weights_hash)
    refuse("what --class-weights names", origin_.options.train.class_weights);
  if (before.partition_hash != now.partition_hash) refuse("the partition", partition.string());
  const uint32_t epochs = origin_.options.train.epochs;
  if (epochs < saved.state.epoch)
    throw Error(fmt::format("the run has {} epochs already", saved.state.epoch), "--epochs", "more, or another --run");
  std::copy(saved.model->values().begin(), saved.model->values().end(), model().values().begin());
  load_optimiser(files_.folder(), saved, model(), *learner_.optimiser, learner_.kept_history());
  state() = saved.state;
  if (state().epoch < epochs) state().standing = state().regular;
  if (state().standing.best_epoch > 0) find_best();
}

// It is a file of its own, which may be damaged or lost while all others are whole. A run that continued nevertheless
// would end with a model that is not the best, or not at all.
void RunCheckpoints::find_best() {
  std::error_code problem;
  std::exception_ptr damaged;
  for (const fs::path& file : {files_.best(), files_.regular_best(), files_.former_best()}) {
    try {
      if (!fs::exists(file, problem) || !is_same_validation(load_model(file).state.standing, state().standing))
        continue;
      found_best_ = file;
      return;
    } catch (const Error&) {
      if (!damaged) damaged = std::current_exception();
    }
  }
  if (origin_.options.train.keep == KeptModel::kLast) return;
  if (damaged) std::rethrow_exception(damaged);
  throw Error(fmt::format("{}, the best so far",
                          fs::exists(files_.best(), problem)
                              ? fmt::format("is not the model of epoch {}", state().standing.best_epoch)
                              : fmt::format("is missing: the model of epoch {}", state().standing.best_epoch)),
              files_.best().string(),
              "restore it from a copy, resume with --keep last, or train again with another --run");
}

void RunCheckpoints::take_back_best() {
  std::error_code problem;
  const fs::path found = std::exchange(found_best_, {});
  if (!found.empty() && found != files_.best()) fs::rename(found, files_.best(), problem);
  if (problem) throw Error(fmt::format("cannot rename: {}", problem.message()), found.string());
  fs::remove(files_.former_best(), problem);
}

SelectBy RunCheckpoints::selected_by() const {
  const SelectBy asked = origin_.options.train.select_by;
  if (asked != SelectBy::kAuto) return asked;
  return model().shape().regression ? SelectBy::kR2 : SelectBy::kMicroF1;
}

void RunCheckpoints::keep_if_best(const Scores& validation, bool regular) {
  Standing& best = state().standing;
  const double score = selection_score(validation, selected_by());
  const bool better =
      best.best_epoch == 0 || score > best.best_score || (score == best.best_score && validation.loss < best.best_loss);
  if (!better || !std::isfinite(score) || !std::isfinite(validation.loss)) {
    ++best.since_best;
  } else {
    if (!regular && best.best_epoch > 0 && writes_) {
      save_best();
      keep_link(files_.best(), files_.regular_best());
    }
    best = {score, validation.loss, state().epoch + 1, 0};
    if (writes_) {
      best_values_ = Buffer<float>(model().values().size());
      std::copy(model().values().begin(), model().values().end(), best_values_.begin());
    }
  }
  if (regular) state().regular = best;
  if (best.best_epoch == state().epoch + 1) best_state_ = state();
}

void RunCheckpoints::save_best() {
  if (best_values_.empty()) return;
  std::error_code ignored;
  if (fs::exists(files_.best(), ignored) && !fs::exists(files_.former_best(), ignored))
    keep_link(files_.best(), files_.former_best());
  save_model(files_.best(), origin_, {model(), best_values_}, best_state_);
  best_values_ = {};
}

void RunCheckpoints::save() {
  check_mappings();
  save_best();
  const fs::path optimiser = files_.optimiser(state().step);
  save_optimiser(optimiser, model(), *learner_.optimiser, learner_.kept_history());
  save_model(files_.last(), origin_, {model(), model().values()}, state(), optimiser.filename().string());
  remove_other_optimisers(files_, optimiser);
  take_back_best();
  since_save_.restart();
}

uint32_t RunCheckpoints::load_kept() {
  if (origin_.options.train.keep == KeptModel::kLast || state().standing.best_epoch == 0) return state().epoch;
  const SavedModel saved = load_model(files_.best());
  if (!is_same_validation(saved.state.standing, state().standing))
    throw Error(fmt::format("is no longer the model of epoch {}, the best of this run", state().standing.best_epoch),
                files_.best().string(), "another program has replaced it: train again with another --run");
  std::copy(saved.model->values().begin(), saved.model->values().end(), model().values().begin());
  kept_state_ = saved.state;
  return state().standing.best_epoch;
}

void RunCheckpoints::save_rule(const OutputRule& rule) {
  const WeightsOf weights{model(), model().values()};
  if (kept_state_)
    save_model(files_.best(), origin_, weights, *kept_state_, {}, rule);
  else
    save_model(files_.last(), origin_, weights, state(), files_.optimiser(state().step).filename().string(), rule);
}

}  // namespace cgcn
