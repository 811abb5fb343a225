// Embeddings of some nodes only: each layer computes the rows that the layer above needs, and no others.
//
// The bits are those of Inference on the whole graph. It multiplies blocks of kInferenceBlock rows, the last one
// shorter. With OpenBLAS a row's bits may depend on its place in the block and on the block's size, but not on the
// other rows. There every row has the same place here: a block takes nodes of different places, as many as there are,
// and the nodes of the graph's last block are computed together.
#pragma once

#include <optional>
#include <vector>

#include "graph/dataset.h"
#include "graph/normalised_rows.h"
#include "kernels/row_buffer.h"
#include "nn/inference_stage.h"
#include "nn/model.h"
#include "train/slab_matrix.h"
#include "train/standardise.h"

namespace cgcn {

class NeighbourhoodInference {
 public:
  // aggregated: N(A)·X of all nodes if there is one and features are not scaled; else the rows are computed, from
  // dense features.
  NeighbourhoodInference(const Model& model, const Dataset& data, const Normalisation& first_layer,
                         const ColumnScaling& scaling, std::optional<FeatureMatrix> aggregated);
  // Whether it can be done at all: an input projection, scaled rows, and sparse features without their product, are
  // left to Inference.
  bool possible() const;

  // Finds the rows that H_layer of these nodes needs. False if they take half of the work of all nodes, or more
  // memory than that: better compute all.
  bool plan(std::span<const NodeId> nodes, uint32_t layer, uint64_t memory);
  // Row i is that of nodes[i].
  SlabMatrix run() const;
  uint64_t planned_rows() const { return planned_rows_; }  // of all layers together

 private:
  using Rows = std::vector<NodeId>;  // rising

  static constexpr uint32_t kEmpty = UINT32_MAX;
  using Slots = std::vector<uint32_t>;  // of a block: which row of a list is at each place; kEmpty: none

  void complete_last_block(Rows& rows) const;
  Rows with_neighbours(const Rows& rows) const;
  std::vector<Slots> arrange(const Rows& rows) const;
  uint64_t bytes() const;
  template <class Work>
  void for_each_block(const Rows& rows, Work&& work) const;
  kernels::RowBuffer run_first(const InferenceStage& stage) const;
  kernels::RowBuffer run_messages(const InferenceStage& stage, kernels::RowBuffer& below) const;
  kernels::RowBuffer run_stage(const InferenceStage& stage, kernels::RowBuffer below) const;
  // N(A)·H of the rows in the slots, where `source` holds rows `from` of H.
  kernels::RowBuffer aggregate(const NormalisedRows& normalised, const Slots& slots, const Rows& rows, const Rows& from,
                               kernels::ConstRows source) const;

  const Model& model_;
  const Dataset& data_;
  const ColumnScaling& scaling_;
  std::optional<FeatureMatrix> aggregated_;
  NormalisedRows first_, others_;
  uint32_t layer_ = 0;
  std::vector<NodeId> nodes_;
  std::vector<Rows> rows_;  // rows_[l]: of layer l; rows_[0]: of X, if N(A)·X is computed
  uint64_t planned_rows_ = 0;
};

}  // namespace cgcn
