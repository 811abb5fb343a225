// The exact forward pass: every node of a graph, all its edges, layer by layer, in a stated memory.
//
//   H_l = layer_l(N(A)·H_{l-1}, H_{l-1}),  N(A) on the degrees of the whole graph; no dropout, no sampling, no cut
//   edges
//
// The layers are those that train, run on rows of the graph (nn/inference_stage.h). Two layers' embeddings are alive at
// a time; of the last hidden layer only what a narrow last layer makes of it, block by block. If they do not fit in the
// budget they are spilled (slab_matrix.h). Rows are worked on in blocks of a fixed size, so that neither the budget nor
// the number of threads changes a bit.
#pragma once

#include <functional>
#include <vector>

#include "common/progress.h"
#include "graph/features.h"
#include "graph/normalised_rows.h"
#include "nn/model.h"
#include "train/graph_share.h"
#include "train/slab_matrix.h"

namespace cgcn {

struct InferenceInput {
  const CsrGraph& graph;
  const FeatureMatrix& x;
  const FeatureMatrix& aggregated;    // N(A)·X of this graph
  const GraphShare* share = nullptr;  // of the ranks of a group, which all run the same inference; null: one process
};

// Rows of some nodes, taken while an inference passes them. nodes: ascending.
struct RowSample {
  std::vector<NodeId> nodes;
  size_t columns = 0;         // 0: nothing was taken
  std::vector<float> values;  // nodes × columns
};

// What the rows of a layer are computed from: all that is below it.
struct StageInput {
  InferenceStage stage;
  SlabMatrix own = {};         // the rows of the stage below, or what this one keeps of them; none for the first
  SlabMatrix made = {};        // the messages, if they are not those rows
  SlabMatrix aggregated = {};  // N(A)·messages, if these are spilled

  bool aggregates() const { return stage.messages() != Messages::kNone; }
  const SlabMatrix& messages() const { return stage.messages() == Messages::kOwn ? made : own; }
};

class Inference {
 public:
  // memory: bytes for embeddings, scratch and the mapped pages of the graph and the features. These are given back
  // block by block if they do not fit as well; what is always there of them, the offsets, is not counted.
  // layer: whose rows it gives; 0: the last one's, the logits.
  Inference(const Model& model, const InferenceInput& input, uint64_t memory, bool show_progress, uint32_t layer = 0);

  // H_layer of all nodes, in a group of the rank's own nodes (the matrix may have more rows than that). below: takes
  // its nodes' rows of the layer below, if there is one.
  SlabMatrix run(RowSample* below = nullptr) const { return run_last(run_below(below)); }
  // The same in two steps …
  StageInput run_below(RowSample* below = nullptr) const;
  SlabMatrix run_last(StageInput input) const;
  // … of which the second can be taken as often as the rows are wanted, so that nobody has to keep them: use(rows,
  // first node) gets those of all nodes, rising, so many at a time. One process only.
  void for_each_rows(const StageInput& input, size_t rows_at_once,
                     const std::function<void(kernels::ConstMatrix rows, NodeId first)>& use) const;
  bool spills() const { return slab_columns_ > 0; }

  // The least that works, and what is enough to keep all of it in memory.
  static uint64_t least_memory(const Model& model, uint64_t nodes);
  static uint64_t whole_memory(const Model& model, const InferenceInput& input);

 private:
  void plan(uint64_t memory);
  void agree_on_slabs();
  kernels::RowRange own_place(kernels::RowRange nodes) const {
    return {nodes.begin - share_.own().begin, nodes.end - share_.own().begin};
  }
  // What a stage takes from the one below: rows of their own, or what it keeps of them; and the messages that it makes
  // of them, if they are made already.
  struct StageRows {
    SlabMatrix own, messages;
  };

  void begin_sample(size_t columns, RowSample& sample) const;
  void take_rows(kernels::RowRange nodes, kernels::ConstMatrix rows, RowSample& sample) const;
  void end_sample(RowSample& sample) const;
  void fill(kernels::RowRange nodes, NormalisedRows::SparseRows& links) const;
  void release_pages(kernels::RowRange rows) const;
  SlabMatrix make_matrix(size_t columns) const;
  StageRows make_rows(const InferenceStage& stage, const InferenceStage* next) const;
  StageInput prepare_stage(const InferenceStage& stage, StageRows below) const;
  // next: the stage above, if there is one. sample: takes rows of what this one gives.
  StageRows run_stage(StageInput input, const InferenceStage* next, RowSample* sample) const;
  void infer_block(const StageInput& input, kernels::RowRange range, kernels::Matrix out) const;
  SlabMatrix make_messages(const InferenceStage& stage, const SlabMatrix& own) const;
  kernels::ConstMatrix aggregate_rows(const SlabMatrix& messages, const SlabMatrix& aggregated, kernels::RowRange range,
                                      float* scratch) const;
  SlabMatrix aggregate_slabs(const SlabMatrix& source) const;
  template <class Work>
  void for_each_block(const char* title, Work&& work) const;
  template <class Work>
  void run_blocks(kernels::RowRange nodes, Progress* progress, Work&& work) const;

  const Model& model_;
  const std::vector<InferenceStage> stages_;
  InferenceInput input_;
  const GraphShare share_alone_;
  const GraphShare& share_;
  NormalisedRows rows_;
  bool show_progress_;
  bool keeps_pages_ = false;  // mapped ones, from one block to the next
  size_t slab_columns_ = 0;   // 0: everything in memory
};

}  // namespace cgcn
