// The first of the three verbs of training, plan → prepare → loop: what a run will be and take, decided from its
// options and the graph before anything is made. A refusal is instant.
#pragma once

#include "common/memory_budget.h"
#include "graph/store.h"
#include "nn/model.h"
#include "train/run_options.h"

namespace cgcn {

inline constexpr uint32_t kBatchesAhead = 2;  // prepared while one is in use

struct TrainingPlan {
  const Store& store;
  RunOptions options;
  Dataset data;         // of the store
  uint64_t budget = 0;  // of memory, for the whole process
  uint32_t ranks = 1;   // of the group that trains

  PartitionOptions partition() const { return options.method.partition(options.partition); }
  bool takes_product() const { return !options.batch_aggregates_input(); }  // a batch reads A·X
  bool takes_x() const {
    return options.model.convolution == ConvolutionForm::kConcat || options.batch_aggregates_input();
  }
};

// Error if options contradict the graph or each other.
void require_possible(const RunOptions& options, const Dataset& data);

// Error if the graph has nothing to train on, if options contradict it or each other, or if the memory is too
// little whatever the clusters will be.
// processes: that share the memory of this machine; ranks: all that train together.
TrainingPlan plan_training(const Store& store, const RunOptions& options, uint32_t processes = 1, uint32_t ranks = 1);

ModelShape shape_of(const Dataset& data);

// Weights, gradients and the optimiser's state: what is there from the start …
uint64_t resident_model_bytes(const TrainingPlan& plan, const Model& model);
// … and the weights of the best epoch until they are saved, or those that are read from a checkpoint.
uint64_t model_bytes(const TrainingPlan& plan, const Model& model);
// Copies of the features if they are scaled, in float32 and then rounded one after another if batches read them in
// bfloat16. Before the scaling is measured: only whether there will be one counts.
uint64_t scaled_bytes(const RunOptions& options, const FeatureMatrix& features, bool aggregates,
                      kernels::Precision kept);

// What training takes at least, in addition to what the process has now, as far as that can be told before there are
// clusters.
uint64_t forecast_training_memory(const TrainingPlan& plan);

}  // namespace cgcn
