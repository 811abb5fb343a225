// The exact forward pass: every node of a graph, all its edges, layer by layer, in a stated memory.
//
//   H_l = layer_l(N(A)·H_{l-1}, H_{l-1}),  N(A) on the degrees of the whole graph; no dropout, no sampling, no cut
//   edges
//
// The layers are those that train, run on rows of the graph (nn/inference_stage.h). Two layers' embeddings are alive at
// a time; of the last hidden layer only what a narrow last layer makes of it, block by block. If they do not fit in the
// budget they are spilled (slab_matrix.h). Rows are worked on in blocks of a fixed size, so that neither the budget nor
// the number of threads changes a bit.
//
// In the order of clusters the rows that an aggregation reads are in the cache most of the time. If all fits in memory,
// every matrix between layers is in that order. If embeddings are spilled their files are in the order of the nodes,
// and so is what is read and written there; each slab is brought into the order of clusters in memory, summed and
// brought back. Sums take the place of the first layer's rows if it takes less to compute these again than to keep
// them.
//
// A model in bfloat16 (ModelOptions::precision) has its embeddings stored so, in half the memory; what it gives is
// float32.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/progress.h"
#include "graph/features.h"
#include "graph/ordered_rows.h"
#include "kernels/row_buffer.h"
#include "nn/model.h"
#include "train/graph_share.h"
#include "train/inference_order.h"
#include "train/slab_matrix.h"

namespace cgcn {

struct InferenceInput {
  const CsrGraph& graph;
  const FeatureMatrix& x;
  const FeatureMatrix& aggregated;    // N(A)·X of this graph
  const GraphShare* share = nullptr;  // of the ranks of a group, which all run the same inference; null: one process
  // Of the rows, taken if the memory of one process has room for it (takes_order); null: that of the nodes.
  const InferenceOrder* order = nullptr;
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
  SlabRows own = {};         // the rows of the stage below, or what this one keeps of them; none for the first stage
  SlabRows made = {};        // the messages, if they are not those rows
  SlabRows aggregated = {};  // N(A)·messages, if these are spilled
  bool makes_own = false;    // there is no `own`: its rows are computed again, block by block

  bool aggregates() const { return stage.messages() != Messages::kNone; }
  const SlabRows& messages() const { return stage.messages() == Messages::kOwn ? made : own; }
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
  bool orders_rows() const { return order_ != nullptr; }  // all of them, in memory …
  bool orders_slabs() const { return orders_slabs_; }     // … or slabs of spilled ones

  // The least that works, and what is enough to keep all of it in memory.
  static uint64_t least_memory(const Model& model, uint64_t nodes);
  static uint64_t whole_memory(const Model& model, const InferenceInput& input);
  // Whether an order of the rows is of use in so much memory.
  static bool takes_order(const Model& model, const InferenceInput& input, uint64_t memory);

 private:
  static std::vector<InferenceStage> stages_to(const Model& model, uint32_t layer);
  void plan(uint64_t memory);
  void agree_on_slabs();
  kernels::RowRange own_place(kernels::RowRange nodes) const {
    return {nodes.begin - share_.own().begin, nodes.end - share_.own().begin};
  }
  // Blocks of a stage that takes features are of nodes, those of the others of rows. The matrix of what the inference
  // gives has its rows in the order of the nodes, the others have them in the inference's own. Which row of a matrix a
  // block's row i is: map[i], or i if there is no map.
  using RowMap = std::span<const NodeId>;
  RowMap map_rows(bool block_of_nodes, bool matrix_of_nodes) const {
    if (order_ == nullptr || block_of_nodes == matrix_of_nodes) return {};
    return block_of_nodes ? order_->rows() : order_->nodes();
  }
  kernels::ConstRows read_block(const SlabRows& matrix, kernels::RowRange range, RowMap map,
                                kernels::RowBuffer& scratch) const;
  kernels::Rows place_block(SlabRows& matrix, kernels::RowRange range, RowMap map, kernels::RowBuffer& scratch) const;
  void write_block(SlabRows& matrix, kernels::RowRange range, RowMap map, kernels::RowBuffer& scratch) const;
  // What a stage takes from the one below: rows of their own, or what it keeps of them; and the messages that it makes
  // of them, if they are made already.
  struct StageRows {
    SlabRows own, messages;
  };

  void begin_sample(size_t columns, RowSample& sample) const;
  void take_rows(kernels::RowRange range, bool block_of_nodes, kernels::ConstRows rows, RowSample& sample) const;
  void end_sample(RowSample& sample) const;
  void fill(kernels::RowRange range, NormalisedRows::SparseRows& links) const;
  void release_pages(kernels::RowRange rows) const;
  SlabRows make_matrix(size_t columns, kernels::Precision precision) const;
  StageRows make_rows(const InferenceStage& stage, const InferenceStage* next) const;
  bool makes_own_again(const InferenceStage& stage) const;
  // ordered: N(A) in the order of clusters, if slabs are brought into it.
  StageInput prepare_stage(const InferenceStage& stage, StageRows below, const OrderedRows* ordered) const;
  // next: the stage above, if there is one. sample: takes rows of what this one gives.
  StageRows run_stage(StageInput input, const InferenceStage* next, RowSample* sample) const;
  void infer_block(const StageInput& input, kernels::RowRange range, kernels::Rows out) const;
  SlabRows make_messages(const InferenceStage& stage, const SlabRows& own) const;
  kernels::ConstRows aggregate_rows(const StageInput& input, kernels::RowRange range,
                                    kernels::RowBuffer& scratch) const;
  // Sums, which may take the place of their source.
  void aggregate_slabs(const SlabRows& source, SlabRows& out) const;
  void aggregate_ordered_slabs(const OrderedRows& ordered, const SlabRows& source, SlabRows& out) const;
  template <class Work>
  void for_each_block(const char* title, Work&& work) const;
  template <class Work>
  void run_blocks(kernels::RowRange nodes, Progress* progress, Work&& work) const;

  const Model& model_;
  std::vector<InferenceStage> stages_;
  InferenceInput input_;
  const GraphShare share_alone_;
  const GraphShare& share_;
  NormalisedRows rows_;
  const InferenceOrder* order_ = nullptr;  // if it is taken, and all is in memory
  bool orders_slabs_ = false;              // if they are brought into that order
  bool show_progress_;
  bool keeps_graph_ = false, keeps_features_ = false;  // their mapped pages, from one block to the next
  size_t slab_columns_ = 0;                            // of float32, twice as many of bfloat16; 0: everything in memory
  size_t room_columns_ = 0;                            // that fit in memory at a time
};

}  // namespace cgcn
