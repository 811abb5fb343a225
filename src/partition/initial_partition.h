// METIS on levels of the multilevel partitioner.
#pragma once

#include "partition/metis.h"
#include "partition/refinement.h"

namespace cgcn {

// Partitions a level into clusters.count clusters, from nothing.
MetisRun partition_level(const LevelGraph& graph, uint32_t parts, float imbalance, uint64_t seed);

// Groups of clusters become clusters: group g, of parts[g] clusters, is partitioned for itself.
MetisRun split_groups(const LevelGraph& graph, Clusters& groups, std::span<const uint32_t> parts, float imbalance,
                      uint64_t seed);

}  // namespace cgcn
