// The second verb of training: what its steps read, found if it is kept or made.
#pragma once

#include <memory>
#include <optional>

#include "batch/batch_source.h"
#include "nn/step.h"
#include "train/checkpoint.h"
#include "train/evaluation.h"
#include "train/plan.h"
#include "train/stage.h"

namespace cgcn {

struct TrainingInput {
  ClusterLayout layout;
  ColumnScaling scaling;
  TargetScaling target;                               // of labels that are numbers
  std::vector<float> class_weights;                   // empty: all classes count the same
  PreparedFeatures features;                          // of the layout's rows
  std::unique_ptr<BatchSource> batches;               // reads from disk what does not fit in memory
  std::optional<ClusterEvaluator> cluster_evaluator;  // if epochs are evaluated so
  // As planned: all that is resident while it trains, and what an exact evaluation may take when the mapped pages of
  // that are given back.
  uint64_t training_memory = 0, evaluation_memory = 0;

  // Whether the workspace of a step was known ahead.
  bool bounded() const { return batches->limits().max_nodes > 0; }
  // Mapped pages, which come back from the files if they are needed again.
  void release_pages() const;
};

// Partitions if that has not been done, computes A·X, and settles what stays in memory. Error if that is too much.
TrainingInput prepare_training(const TrainingPlan& plan, StageTimes& stages);

// What of it is kept in the store, so that others find it.
void prepare_kept_files(const TrainingPlan& plan, StageTimes& stages);

TrainedOn describe_data(const TrainingPlan& plan, const TrainingInput& input);

}  // namespace cgcn
