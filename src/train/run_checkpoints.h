// The checkpoints of a run as it continues: the last state, and the model that did best on validation.
#pragma once

#include "common/timer.h"
#include "train/learner.h"
#include "train/metrics.h"
#include "train/run_directory.h"

namespace cgcn {

class RunCheckpoints {
 public:
  // Everything outlives it. writes: false for a rank of a group that leaves the files to the first one, and only keeps
  // the standing.
  RunCheckpoints(const RunFiles& files, ModelOrigin origin, Learner& learner, bool writes);

  // The checkpoint knows what it was trained with; config.toml, where the options come from, may have been edited.
  // Error if they differ in what a resumed run may not change.
  static void require_same_options(const RunFiles& files, RunOptions options);

  // What the arrays in all files take at most: new files are written beside those that they replace. The model need
  // only be planned; nodes: that a history of embeddings would have.
  static uint64_t planned_bytes(const RunOptions& options, const Model& model, uint64_t nodes);

  const ModelOrigin& origin() const { return origin_; }
  // Whether there is one to continue from.
  bool exist() const;
  // Weights, optimiser and state of the last one. Error if the graph or its partition, which is in this folder, has
  // changed since, or if the best model so far is damaged or lost.
  void resume(const fs::path& partition);
  // Once last.safetensors is written again: the model that it calls the best is best.safetensors, whatever a longer
  // run or a killed one was about to put there. A run of more epochs continues as if it had always been so long:
  // without the validation of its old last epoch.
  void take_back_best();

  // Better: a higher score of --select-by; at the same one a lower loss. Not regular: only because the run ends here.
  void keep_if_best(const Scores& validation, bool regular);
  void save();
  void save_best();
  double seconds_since_save() const { return since_save_.seconds(); }

  // Brings back the weights that the run offers; the epoch that they are of.
  uint32_t load_kept();
  // Saves them again with what was chosen for their output; after load_kept().
  void save_rule(const OutputRule& rule);

 private:
  Model& model() const { return learner_.model; }
  TrainingState& state() const { return learner_.state; }
  SelectBy selected_by() const;
  void find_best();

  const RunFiles& files_;
  ModelOrigin origin_;
  Learner& learner_;
  bool writes_;
  Buffer<float> best_values_;  // not yet in its file; empty: that is up to date
  TrainingState best_state_;
  fs::path found_best_;                      // where a resumed run has its best model; empty: nowhere
  std::optional<TrainingState> kept_state_;  // of best.safetensors, if the run offers that
  Timer since_save_;
};

}  // namespace cgcn
