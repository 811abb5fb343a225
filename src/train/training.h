// A training run: plan → prepare → loop, with the checkpoints, metrics and measurements that listen to the loop.
//
// What is learnt is a function of the options, the store and the seed alone: neither the number of threads or of
// processes, nor the time at which checkpoints are taken, nor stopping and resuming changes a bit of the weights.
//
// In a group every rank has a Training, and all go through the same code with the same state. The first one alone has
// the run's folder: it writes, and the others get from it what it read.
#pragma once

#include <functional>

#include "dist/group.h"
#include "train/learner.h"
#include "train/loop.h"
#include "train/prepare.h"
#include "train/result.h"
#include "train/run_checkpoints.h"
#include "train/run_directory.h"
#include "train/run_evaluation.h"
#include "train/run_figures.h"

namespace cgcn {

class Training {
 public:
  // Plans and prepares. A run that has a checkpoint continues from it; Error if the store or the partition is not the
  // one it was trained on. run: RunDirectory::nowhere() on ranks other than the first. The group outlives it.
  // before: what was done for a new run until now, which is part of its time.
  Training(const Store& store, const RunOptions& options, RunDirectory run, dist::Group& group = dist::no_group(),
           StageTimes before = {});

  // Calls after every epoch, and ends if that returns false. Throws Interrupted if the user stopped it,
  // after having saved. A new run that fails before its first step is taken back.
  TrainingSummary run(const std::function<bool(const EpochRecord&)>& on_epoch = {});

  const TrainingState& state() const { return learner_.state; }
  const RunDirectory& directory() const { return run_; }
  const TrainingInput& input() const { return input_; }

 private:
  void require_possible_in_group() const;
  void begin();
  bool has_epochs_left() const;
  void loop(const std::function<bool(const EpochRecord&)>& on_epoch);
  EpochRecord end_epoch();
  void validate(EpochRecord& record);
  void check_memory();
  void save();
  [[noreturn]] void stop_interrupted();
  [[noreturn]] void fail_not_finite(const NotFinite& problem);
  Evaluation test_and_draw_embeddings();
  TrainingSummary summarise();

  dist::Group& group_;
  RunDirectory run_;
  RunFigures figures_;
  const TrainingPlan plan_;
  const TrainingInput input_;
  Learner learner_;
  RunCheckpoints checkpoints_;
  RunEvaluation evaluation_;
};

}  // namespace cgcn
