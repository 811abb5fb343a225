// What an epoch and a run came to, and both as JSON: metrics.jsonl and result.json in the run's folder, and what train
// and evaluate print with --json.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/memory.h"
#include "train/checkpoint.h"
#include "train/evaluation.h"
#include "train/run_figures.h"
#include "train/stage.h"

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
  bool weighted_classes = false;         // --class-weights
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

// Scores, counts per class, and the confusion matrix if there is one.
nlohmann::json describe_tally(const Tally& tally, const std::function<std::string(uint32_t)>& class_name);
// "class X is never predicted: try --class-weights balanced", of classes that validation or test nodes have; empty:
// each is.
std::string describe_never_predicted(const TrainingSummary& summary, const Dataset& data);
nlohmann::json describe_smoothing(const SmoothingChoice& choice);
nlohmann::json describe_epoch(const EpochRecord& record);
nlohmann::json describe_result(const TrainingSummary& summary, const Dataset& data);

}  // namespace cgcn
