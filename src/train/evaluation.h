// Scores of a model on all nodes of a graph that have a role.
#pragma once

#include "batch/cluster_batches.h"
#include "graph/store.h"
#include "train/inference.h"
#include "train/metrics.h"
#include "train/run_options.h"
#include "train/smoothing.h"
#include "train/standardise.h"

namespace cgcn {

struct Evaluation {
  Tally train, validation, test;  // train: of the model's own output; smoothing knows the labels
  OutputRule rule = {};           // of the model's own output
  std::optional<SmoothingChoice> smoothing = {};
  double seconds = 0;
  bool spilled = false;  // the embeddings did not fit in the memory given

  Tally& of(Role role) { return role == Role::kTrain ? train : role == Role::kValidation ? validation : test; }
  const Tally& of(Role role) const {
    return role == Role::kTrain ? train : role == Role::kValidation ? validation : test;
  }
};

// What is done with the logits of all nodes in addition to counting.
struct OutputWork {
  bool ranks = false;               // ROC-AUC and average precision, if the labels have them
  OutputRule rule = {};             // as it is kept with the model …
  bool fits_temperature = false;    // … or chosen on the validation nodes
  bool chooses_thresholds = false;  // the same; multi-label only

  SelectBy thresholds_by = SelectBy::kAuto;

  SmoothingRequest smoothing = {};

  bool needs_temperature(const Labels& labels) const;
  // Whether the logits of all nodes are needed at once.
  bool needs_all(const Labels& labels) const;
};

// Exact: see inference.h. memory: what it may take in addition to what the process has now. hidden: takes its nodes'
// rows of the last hidden layer.
Evaluation evaluate_exactly(const Model& model, const InferenceInput& input, const Dataset& data, uint64_t memory,
                            bool show_progress, const OutputWork& work = {}, RowSample* hidden = nullptr);

// Rows that are scored at a time: a sum over more nodes is made of these.
inline constexpr size_t kRowsScored = size_t{1} << 16;

// What is resident during an inference: offsets, labels and split, which are mapped, and the logits that are scored.
uint64_t memory_beside_inference(const Model& model, const Dataset& data);
// What an inference leaves to smoothing. In a group, half of what is left holds the logits of all ranks.
uint64_t smoothing_memory(const Model& model, const Dataset& data, Smoothing smoothing, uint32_t ranks = 1);
// The least that evaluate_exactly works with.
uint64_t least_evaluation_memory(const Model& model, const Dataset& data, Smoothing smoothing = Smoothing::kNone,
                                 uint32_t ranks = 1);

// As the released code validates: the whole graph is cut into METIS clusters (“blocks” in --evaluation blocks), and
// edges between them are left out from layer 2 on. Cheaper and a little wrong. The clusters are kept with the store as
// a partition is.
class ClusterEvaluator {
 public:
  // budget: of memory, for the whole process.
  ClusterEvaluator(const Store& store, const RunOptions& options, const ColumnScaling& scaling, uint32_t clusters,
                   uint64_t budget);
  Evaluation evaluate(Model& model, const OutputRule& rule = {}) const;
  // For a plan of memory: batches and logits, with the model's workspace for them; and all that may be mapped.
  uint64_t buffer_bytes(Model& model) const;
  BatchLimits limits() const { return batches_.limits(); }
  uint64_t mapped_bytes() const;

 private:
  void release_pages() const;

  uint64_t budget_;
  ClusterLayout layout_;
  PreparedFeatures features_;
  ClusterBatches batches_;
};

}  // namespace cgcn
