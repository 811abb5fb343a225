// The training loop (Algorithm 1): batches of clusters or of another method, gradients, steps of the optimiser;
// validation, checkpoints, early stopping.
//
// What happens is a function of the options, the store and the seed alone: neither the number of threads, nor the time
// at which checkpoints are taken, nor stopping and resuming changes a bit of the weights.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "batch/batch_queue.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/timer.h"
#include "nn/optimiser.h"
#include "train/checkpoint.h"
#include "train/evaluation.h"
#include "train/run_directory.h"

namespace cgcn {

inline constexpr uint32_t kBatchesAhead = 2;  // prepared while one is in use

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

struct TrainingSummary {
  fs::path run;
  uint32_t epochs = 0;      // that were trained
  uint32_t kept_epoch = 0;  // whose model was tested
  bool stopped_early = false;
  uint32_t clusters = 0, per_batch = 0;
  uint64_t weights = 0;
  double train_seconds = 0, total_seconds = 0;
  std::optional<Evaluation> evaluation;  // of the kept model, on the whole graph
  Work work;                             // of all epochs
  uint64_t graph_bytes = 0;              // the training graph's links, mapped
  uint64_t features_bytes = 0;           // X and A·X of its nodes, mapped or in memory
  uint64_t history_bytes = 0;            // embeddings of all nodes, where the method keeps them
  uint64_t model_bytes = 0;              // weights, gradients, the optimiser's state
  uint64_t workspace_bytes = 0;          // of one step
  uint64_t peak_memory = 0;              // of the whole process, mapped files included
  uint64_t training_peak = 0;            // of its steps until the first evaluation, likewise
  StageTimes stages;                     // where the time went
};

ModelShape shape_of(const Dataset& data);

// What training on this data takes at least, besides what the process has now, as far as that can be told before there
// are clusters.
uint64_t forecast_training_memory(const RunOptions& options, const Dataset& data);
void require_memory_for_model(const RunOptions& options, const Dataset& data, uint64_t budget);

class Trainer {
 public:
  // Partitions if that has not been done. A run that has a checkpoint goes on from it; Error where the store or the
  // partition is not the one it was trained on.
  Trainer(const Store& store, const RunOptions& options, RunDirectory run);

  // Calls after every epoch, and ends there where that returns false. Throws Interrupted where the user stopped it,
  // after having saved.
  TrainingSummary run(const std::function<bool(const EpochRecord&)>& on_epoch = {});

  uint32_t batches_per_epoch() const { return batches_->batches_per_epoch(); }
  const TrainingState& state() const { return state_; }
  const RunDirectory& directory() const { return run_; }
  const ClusterLayout& layout() const { return layout_; }

 private:
  EmbeddingHistory* history() { return history_ ? &*history_ : nullptr; }
  void describe_run();
  void record_clusters() const;
  bool resume_from_checkpoint();
  void take_back_regular_best();
  bool out_of_patience() const {
    return options_.train.patience > 0 && state_.standing.since_best >= options_.train.patience;
  }
  void run_steps(BatchQueue& queue, Progress& progress);
  void take_step(const Batch& batch, double learning_rate);
  [[noreturn]] void fail_not_finite(double loss, double gradient_norm);
  EpochRecord end_epoch();
  void keep_if_best(const Scores& validation, bool regular);
  Evaluation evaluate(EvaluationKind kind, bool show_progress);
  Evaluation evaluate_exactly_in_budget(bool show_progress);
  PreparedFeatures prepare_training() const;
  void prepare_blocks();
  void plan_memory();
  void check_memory();
  void release_pages() const;
  void begin_measuring();
  void measure_training();
  uint64_t peak_memory() const { return std::max(peak_before_, memory_figures().peak_rss); }
  void save_best();
  void save();
  [[noreturn]] void stop_interrupted();
  TrainingSummary summarise();
  StageTimes all_stages(double total_seconds) const;

  const uint64_t budget_;  // of memory, for the whole process
  const Store& store_;
  RunOptions options_;
  RunDirectory run_;
  Dataset data_;
  Timer session_;
  StageTimes stages_;  // of all sessions, but for the epochs, whose times are in metrics.jsonl
  ClusterLayout layout_;
  TrainedOn trained_on_;
  ColumnScaling scaling_;
  PreparedFeatures training_;
  uint64_t training_memory_ = 0;           // all that is resident while it trains, as planned
  uint64_t evaluation_memory_ = 0;         // what is left beside it when its mapped pages are given back
  std::optional<PreparedFeatures> whole_;  // of all nodes; made when first needed
  std::optional<BlockEvaluator> blocks_;   // where epochs are evaluated so
  std::unique_ptr<BatchSource> batches_;
  Model model_;
  std::unique_ptr<Optimiser> optimiser_;
  std::optional<EmbeddingHistory> history_;  // where the method keeps one
  TrainingState state_;
  Buffer<float> best_values_;  // not yet in best.safetensors; empty: it is up to date
  TrainingState best_state_;
  Timer since_save_;
  double seconds_before_ = 0;       // of earlier sessions
  uint64_t peak_before_ = 0;        // of memory, until training began
  bool measures_training_ = false;  // no evaluation has taken memory yet
};

}  // namespace cgcn
