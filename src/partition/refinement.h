// Better clusters for a level: nodes move where they have more edges, within a strict bound on every cluster's weight.
#pragma once

#include <vector>

#include "partition/level_graph.h"

namespace cgcn {

// Which cluster each node of a level is in, and what the clusters weigh.
struct Clusters {
  Buffer<uint32_t> of;  // per node
  uint32_t count = 0;
  std::array<std::vector<uint64_t>, kMostConstraints> weight;
  std::array<uint64_t, kMostConstraints> most{};  // that a cluster may weigh

  void weigh(const LevelGraph& graph);  // from scratch
  bool fits(const LevelGraph& graph, NodeId v, uint32_t cluster) const {
    for (size_t c = 0; c < graph.num_constraints; ++c)
      if (weight[c][cluster] + graph.node_weight(v, c) > most[c]) return false;
    return true;
  }
  bool overloaded(uint32_t cluster) const {
    return weight[0][cluster] > most[0] || (!weight[1].empty() && weight[1][cluster] > most[1]);
  }
  void move(const LevelGraph& graph, NodeId v, uint32_t cluster) {
    for (size_t c = 0; c < graph.num_constraints; ++c) {
      weight[c][of[v]] -= graph.node_weight(v, c);
      weight[c][cluster] += graph.node_weight(v, c);
    }
    of[v] = cluster;
  }
};

// Moves nodes out of clusters above their bound, those that lose least first, into clusters that have room. Returns
// whether all are within it now; with nodes of weight 1 they are if the bound can be kept at all. moved: set to 1 for
// nodes that moved, if it is given.
bool rebalance(const LevelGraph& graph, Clusters& clusters, uint64_t seed, std::span<uint8_t> moved = {});

struct RefinementEffort {
  uint32_t jet_iterations = 6, greedy_rounds = 3;
};

// Jet (Gilbert, Madduri, Boman and Rajamanickam 2024): nodes move at once, also to where they lose a little or there is
// no room, by what their neighbours are about to do; then clusters are balanced again. From the best balanced state
// that it met, nodes then move one by one if they gain and there is room. Returns the weight of the entries between
// clusters.
uint64_t refine(const LevelGraph& graph, Clusters& clusters, const RefinementEffort& effort, uint64_t seed);

}  // namespace cgcn
