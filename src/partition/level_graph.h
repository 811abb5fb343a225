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
  // Level 0 where it is mapped and some nodes of the store are not partitioned: 1 for those that are. Rows of the
  // others are not read.
  std::span<const uint8_t> chosen;
  bool streamed = false;  // read from disk in each pass: pages are given back

  NodeId num_nodes() const { return static_cast<NodeId>(offsets.size() - 1); }
  uint64_t num_entries() const { return targets.size(); }
  uint64_t degree(NodeId v) const { return offsets[size_t{v} + 1] - offsets[v]; }
  bool has(NodeId v) const { return chosen.empty() || chosen[v] != 0; }
  uint32_t node_weight(NodeId v, size_t constraint = 0) const {
    return node_weights[constraint].empty() ? 1 : node_weights[constraint][v];
  }
  uint64_t total_weight(size_t constraint = 0) const;
  void release_rows(size_t begin, size_t end) const {
    if (!streamed) return;
    targets.release(offsets[begin], offsets[end]);
    if (!float_weights.empty()) float_weights.release(offsets[begin], offsets[end]);
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

// One node for each cluster. cluster_of: a number below num_clusters for each node, kNoNode where it is not
// partitioned.
LevelGraph contract(const LevelGraph& graph, std::span<const NodeId> cluster_of, NodeId num_clusters);

}  // namespace cgcn
