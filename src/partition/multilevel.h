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

// The graph among `nodes` (rising ids) as level 0: a view of the store's where that will do, else a copy.
LevelGraph make_level_graph(const Dataset& data, std::span<const NodeId> nodes, NodeWeights node_weights);

// About what it takes at most, the graph included.
uint64_t estimate_multilevel_memory(uint64_t nodes, uint64_t entries);

// parts is from 2 to the number of nodes. Throws Interrupted.
MultilevelRun partition_multilevel(LevelGraph graph, uint32_t parts, const PartitionOptions& options);

}  // namespace cgcn
