// What every node's embeddings were when it was last computed: one matrix of all nodes for each layer that others
// aggregate from. Zero at first. It stands in for the neighbours that a batch of samples leaves out (batch.h).
#pragma once

#include <span>
#include <vector>

#include "common/buffer.h"
#include "graph/batch.h"
#include "kernels/matrix.h"

namespace cgcn {

class Model;

class EmbeddingHistory {
 public:
  EmbeddingHistory(const Model& model, NodeId nodes);

  uint32_t num_layers() const { return static_cast<uint32_t>(layers_.size()); }  // 1 … L - 1
  NodeId num_nodes() const { return nodes_; }
  kernels::ConstMatrix embeddings(uint32_t layer) const;
  // The same, flat and packed, for checkpoints.
  std::span<float> values(uint32_t layer) { return layers_[layer - 1].embeddings; }
  std::span<const float> values(uint32_t layer) const { return layers_[layer - 1].embeddings; }
  uint64_t bytes() const;
  // What one would take to begin with, of a model that need only be planned.
  static uint64_t planned_bytes(const Model& model, uint64_t nodes);

  // The constant terms of layer l's rows, of_history·H̄ + of_mean·H, from the layer below's history and its H of this
  // step; then that H becomes the history of its nodes. term() is what was computed last.
  void advance(const Batch& batch, uint32_t layer, kernels::ConstMatrix below);
  kernels::ConstMatrix term(const Batch& batch, uint32_t layer) const;

 private:
  struct Layer {
    uint32_t width = 0;
    Buffer<float> embeddings;
    Buffer<float> term;  // of the layer above, as wide as this one
  };
  NodeId nodes_;
  std::vector<Layer> layers_;
};

}  // namespace cgcn
