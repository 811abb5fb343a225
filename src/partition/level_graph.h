// A graph of the multilevel partitioner: symmetric, with whole-number weights. Level 0 is the graph itself, copied or
// mapped; every further level has one node for each cluster of the level below.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "common/buffer.h"
#include "common/shared_array.h"
#include "graph/csr_graph.h"

namespace cgcn {

struct Dataset;
enum class NodeWeights;

inline constexpr size_t kMostConstraints = 2;  // node weights that are balanced: nodes, and labelled nodes

struct LevelGraph {
  SharedArray<EdgeOffset> offsets;  // n + 1
  SharedArray<NodeId> targets;
  SharedArray<uint32_t> edge_weights;  // empty: see float_weights
  SharedArray<float> float_weights;    // empty: every entry counts 1; else as scaled() says
  double weight_scale = 0;
  std::array<Buffer<uint32_t>, kMostConstraints> node_weights;  // empty: every node counts 1
  size_t num_constraints = 1;
  // Level 0 if it is read from the store and not all of the store's nodes are partitioned: node v is row nodes[v] of
  // the arrays, and position is the inverse, kNoNode for rows that are not partitioned. Empty: node v is row v.
  std::span<const NodeId> nodes;
  Buffer<NodeId> position;
  uint64_t entries_among = 0;  // entries that lead to partitioned nodes
  uint64_t streamed =
      0;  // 0: stays in memory. Else read from disk in every pass; bytes of buffers that contract() may take

  NodeId num_nodes() const { return static_cast<NodeId>(nodes.empty() ? offsets.size() - 1 : nodes.size()); }
  uint64_t num_entries() const { return position.empty() ? targets.size() : entries_among; }
  size_t row(NodeId v) const { return nodes.empty() ? v : nodes[v]; }
  EdgeOffset row_begin(NodeId v) const { return offsets[row(v)]; }
  EdgeOffset row_end(NodeId v) const { return offsets[row(v) + 1]; }
  uint64_t degree(NodeId v) const { return row_end(v) - row_begin(v); }  // at least the edges that count
  // The node that entry e leads to; kNoNode if it is not partitioned. The node itself if it is a loop, which does
  // not count.
  NodeId target(EdgeOffset e) const { return position.empty() ? targets[e] : position[targets[e]]; }
  uint32_t node_weight(NodeId v, size_t constraint = 0) const {
    return node_weights[constraint].empty() ? 1 : node_weights[constraint][v];
  }
  uint64_t total_weight(size_t constraint = 0) const;
  // The rows of nodes [begin, end) were read, and will be read again from disk.
  void release_rows(size_t begin, size_t end) const {
    if (streamed == 0 || begin == end) return;
    const EdgeOffset first = row_begin(static_cast<NodeId>(begin)), last = row_end(static_cast<NodeId>(end - 1));
    targets.release(first, last);
    if (!float_weights.empty()) float_weights.release(first, last);
  }

  // A weight as a whole number from 1.
  static uint32_t scaled(float weight, double scale) {
    return std::max(1u, static_cast<uint32_t>(scale * static_cast<double>(std::abs(weight))));
  }
  // Calls use(weight_of), where weight_of(e) is the weight of entry e: one loop compiled for each kind of weights.
  template <class Use>
  decltype(auto) with_weights(Use&& use) const {
    if (!edge_weights.empty()) return use([weights = edge_weights.data()](EdgeOffset e) { return weights[e]; });
    if (!float_weights.empty())
      return use(
          [weights = float_weights.data(), scale = weight_scale](EdgeOffset e) { return scaled(weights[e], scale); });
    return use([](EdgeOffset) { return 1u; });
  }
};

// One node for each cluster. cluster_of: a number below num_clusters for each node, kNoNode if it is not
// partitioned.
LevelGraph contract(const LevelGraph& graph, std::span<const NodeId> cluster_of, NodeId num_clusters);

}  // namespace cgcn
