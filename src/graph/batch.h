// What one training step sees.
//
// Layer 1 works on the precomputed A·X, so that a network of L layers aggregates L - 1 times. adjacencies[l] is the
// matrix of layer l + 2: its rows are that layer's nodes, its columns the previous layer's. The nodes of a layer are
// always the first ones of the layer before (“sources begin with the targets”), so that a node's own embedding is at
// the same row. Cluster batches use one square matrix for all layers; the sampling methods have one per layer,
// shrinking to the targets.
#pragma once

#include <cstdint>
#include <span>

#include "common/sparse_view.h"
#include "graph/dataset.h"

namespace cgcn {

struct Adjacency {
  SparseView forward;   // targets × sources
  SparseView backward;  // its transpose, sources × targets (the same arrays if symmetric)
};

// What a sampled adjacency leaves out of the aggregation, and what stands in for it: constant terms of the targets'
// rows, of_history·H̄ + of_mean·μ, with H̄ the embeddings that the layer below had when each node was last computed and μ
// its embeddings in this step without dropout.
struct Remainder {
  SparseView of_history;  // targets × the layout's rows
  SparseView of_mean;     // targets × sources; no rows: there is no such term
};

// The arrays that a batch's inputs are rows of, if they were brought along with it.
struct BatchArrays {
  const FeatureMatrix *x = nullptr, *aggregated = nullptr;
  const Labels* labels = nullptr;
};

struct Batch {
  uint32_t epoch = 0, index = 0;               // which batch this is: the keys of its random streams
  std::span<const NodeId> inputs;              // the rows that feed layer 1, in the batch's order: the layout's …
  const BatchArrays* arrays = nullptr;         // … if this is null, else rows of these
  const Adjacency* input_adjacency = nullptr;  // layer 1 aggregates X by it; null: it takes the precomputed A·X
  std::span<const Adjacency> adjacencies;      // one, used by all layers, or L - 1
  std::span<const Remainder> remainders;       // none, or one per adjacency
  std::span<const uint32_t> loss_rows;         // rows of the last layer that count in the loss, rising
  uint32_t num_outputs = 0;                    // rows of the last layer
  double seconds = 0;                          // that a queue took to prepare it

  const Adjacency& adjacency(uint32_t layer) const {  // of layer 2 … L; of layer 1 if there is an input_adjacency
    if (layer == 1) return *input_adjacency;
    return adjacencies.size() == 1 ? adjacencies[0] : adjacencies[layer - 2];
  }
  const Remainder* remainder(uint32_t layer) const {
    return remainders.empty() || layer == 1 ? nullptr : &remainders[remainders.size() == 1 ? 0 : layer - 2];
  }
  uint32_t rows_of_layer(uint32_t layer) const {  // 0: of the input; 1 … L
    if (layer == 0 || (layer == 1 && input_adjacency == nullptr)) return static_cast<uint32_t>(inputs.size());
    return adjacency(layer).forward.rows;
  }
  // What L layers compute: embeddings of nodes, and edges that they are passed along.
  uint64_t num_embeddings(uint32_t layers) const {
    uint64_t total = 0;
    for (uint32_t l = 1; l <= layers; ++l) total += rows_of_layer(l);
    return total;
  }
  uint64_t num_links(uint32_t layers) const {
    uint64_t total = 0;
    for (uint32_t l = lowest_aggregating(); l <= layers; ++l) {
      total += adjacency(l).forward.num_entries();
      if (const Remainder* rest = remainder(l)) total += rest->of_history.num_entries();
    }
    return total;
  }
  // The rows that those edges could take embeddings from: of the layers below theirs.
  uint64_t num_sources(uint32_t layers) const {
    uint64_t total = 0;
    for (uint32_t l = lowest_aggregating(); l <= layers; ++l) total += adjacency(l).forward.columns;
    return total;
  }
  uint32_t lowest_aggregating() const { return input_adjacency != nullptr ? 1 : 2; }
  // The layout's rows that a layer's rows are. 0: the input.
  std::span<const NodeId> nodes_of_layer(uint32_t layer) const {
    return layer == 0 ? inputs : inputs.first(rows_of_layer(layer));
  }
};

// Upper bounds over all batches that a source can give, so that the workspace is sized once. Zeros: it is not known,
// and the workspace grows with the batches.
struct BatchLimits {
  uint32_t max_nodes = 0;    // of any layer
  uint64_t max_entries = 0;  // of any adjacency
};

}  // namespace cgcn
