// A training run: plan → prepare → loop, with the checkpoints, metrics and measurements that listen to the loop.
//
// What is learnt is a function of the options, the store and the seed alone: neither the number of threads or of
// processes, nor the time at which checkpoints are taken, nor stopping and resuming changes a bit of the weights.
//
// In a group every rank has a Training, and all go through the same code with the same state. The first one alone has
// the run's folder: it writes, and the others get from it what it read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/progress.h"
#include "dist/group.h"
#include "train/loop.h"
#include "train/prepare.h"
#include "train/run_checkpoints.h"
#include "train/run_evaluation.h"
#include "train/run_figures.h"

namespace cgcn {

// One epoch as metrics.jsonl has it.
struct EpochRecord {
  uint32_t epoch = 0;  // from 1
  double loss = 0, learning_rate = 0;
  double seconds = 0;        // of its steps, of which
  double batch_seconds = 0;  //   waiting for batches to be ready
  Work work;
  std::optional<Scores> validation;
  double validation_seconds = 0;
  MemoryFigures memory;  // when it ended
};

// What a rank of a group did with the time of its steps, in this session.
struct RankFigures {
  double compute = 0, waiting = 0, moving = 0;  // seconds; waiting: for slower ranks, moving: for bytes
  uint64_t bytes_sent = 0;
  uint64_t peak_memory = 0;
};

struct TrainingSummary {
  fs::path run;
  uint32_t epochs = 0;      // that were trained
  uint32_t kept_epoch = 0;  // whose model was tested
  SelectBy selected_by = SelectBy::kMicroF1;
  bool stopped_early = false;
  uint32_t clusters = 0, per_batch = 0;
  uint64_t weights = 0;
  double train_seconds = 0, total_seconds = 0;
  std::optional<Evaluation> evaluation;  // of the kept model, on the whole graph
  Work work;                             // of all epochs
  uint64_t graph_bytes = 0;              // the training graph's edges, mapped
  uint64_t features_bytes = 0;           // X and A·X of its nodes, mapped or in memory
  uint64_t history_bytes = 0;            // embeddings of all nodes, if the method keeps them
  uint64_t model_bytes = 0;              // weights, gradients, the optimiser's state
  uint64_t workspace_bytes = 0;          // of one step
  uint64_t peak_memory = 0;              // of the whole process, mapped files included
  uint64_t training_peak = 0;            // of its steps until the first evaluation, likewise
  StageTimes stages;                     // where the time went
  uint32_t batches_per_step = 1;
  std::vector<RankFigures> ranks;  // empty: one process
  std::vector<std::string> hosts;  // of these
};

class Training {
 public:
  // Plans and prepares. A run that has a checkpoint continues from it; Error if the store or the partition is not the
  // one it was trained on. run: RunDirectory::nowhere() on ranks other than the first. The group outlives it.
  Training(const Store& store, const RunOptions& options, RunDirectory run, dist::Group& group = dist::no_group());

  // Calls after every epoch, and ends if that returns false. Throws Interrupted if the user stopped it,
  // after having saved. A new run that fails before its first step is taken back.
  TrainingSummary run(const std::function<bool(const EpochRecord&)>& on_epoch = {});

  const TrainingState& state() const { return state_; }
  const RunDirectory& directory() const { return run_; }
  const TrainingInput& input() const { return input_; }

 private:
  void require_possible_in_group() const;
  void begin();
  void share_state();
  void describe_run(const TrainedOn& trained_on) const;
  void record_clusters() const;
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
  StageTimes all_stages(double total_seconds) const;

  dist::Group& group_;
  RunDirectory run_;
  RunFigures figures_;
  const TrainingPlan plan_;
  const TrainingInput input_;
  Model model_;
  std::unique_ptr<Optimiser> optimiser_;
  std::optional<EmbeddingHistory> history_;  // if the method keeps one
  TrainingState state_;
  RunCheckpoints checkpoints_;
  RunEvaluation evaluation_;
  RankFigures steps_;  // of this rank
};

}  // namespace cgcn
