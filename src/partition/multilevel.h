// The multilevel partitioner: coarsen by label propagation, partition the coarsest graph with METIS, refine on the way
// back.
//
// With many clusters METIS works twice: on the coarsest graph it finds groups of clusters, and one finer level is then
// partitioned group by group, on all threads. The same seed gives the same clusters for any number of threads.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "partition/level_graph.h"
#include "partition/partition.h"
#include "partition/refinement.h"

namespace cgcn {

// What was done on one level; level 0 is the graph.
struct LevelFigures {
  uint64_t nodes = 0, entries = 0;
  uint64_t most_weight = 0;      // of a node: the bound that made this level's nodes; 1 at level 0
  double coarsen_seconds = 0;    // making this level
  double partition_seconds = 0;  // METIS on it
  double refine_seconds = 0;
  uint64_t cut =
      0;  // weight of the entries between clusters once this level was refined; between groups above the split

  nlohmann::json to_json() const;
};

struct MultilevelRun {
  Buffer<uint32_t> clusters;  // per node of the graph, below parts
  std::vector<LevelFigures> levels;
  uint64_t metis_peak_rss = 0;
};

// The graph among `nodes` (rising ids, which must stay) as level 0, in so much memory: the store's own arrays, a copy
// of a part of them, or, if that does not fit, the store's arrays read from disk in every pass. The result is the
// same. A directed graph is always copied.
LevelGraph make_level_graph(const Dataset& data, std::span<const NodeId> nodes, NodeWeights node_weights,
                            uint64_t memory = UINT64_MAX);

// About what it takes with the graph in memory, and with the graph on disk.
uint64_t estimate_multilevel_memory(uint64_t nodes, uint64_t entries);
uint64_t least_multilevel_memory(uint64_t store_nodes, uint64_t entries, bool directed);

// How long it looks for better clusters. Levels of many entries get a half or a third of it.
struct MultilevelEffort {
  uint32_t clustering_rounds = 4;
  RefinementEffort refinement;
};

// parts is from 2 to the number of nodes. Throws Interrupted.
MultilevelRun partition_multilevel(LevelGraph graph, uint32_t parts, const PartitionOptions& options,
                                   const MultilevelEffort& effort = {});

}  // namespace cgcn
