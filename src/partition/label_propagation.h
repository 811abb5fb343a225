// Clusters for the next coarser level: size-constrained label propagation (Raghavan et al. 2007; Meyerhenke, Sanders
// and Schulz 2014).
//
// Every node starts as its own cluster and moves to the neighbouring cluster to which it has the heaviest edges, as
// long as that stays within a weight. Nodes are taken in batches: all of a batch decide at once on what was before it,
// then move one after the other. The result is the same for any number of threads.
#pragma once

#include "partition/level_graph.h"

namespace cgcn {

struct Clustering {
  Buffer<NodeId> cluster_of;  // per node, below num_clusters
  NodeId num_clusters = 0;
};

struct ClusteringLimits {
  std::array<uint64_t, kMostConstraints> most_weight{};  // of a cluster
  uint32_t rounds = 4;
  uint64_t seed = 1;
};

Clustering propagate_labels(const LevelGraph& graph, const ClusteringLimits& limits);

}  // namespace cgcn
