// Which cluster each node is in: the partitioners themselves.
#pragma once

#include <span>

#include "common/buffer.h"
#include "partition/multilevel.h"
#include "partition/partition.h"

namespace cgcn {

struct Assignment {
  Buffer<uint32_t> clusters;  // per chosen node, below num_clusters; no cluster is empty
  uint32_t num_clusters = 0;
  std::vector<LevelFigures> levels;  // of the multilevel partitioner
};

// The store's nodes that are partitioned: the training nodes, or all. Rising.
std::vector<NodeId> chosen_nodes(const Dataset& data, const PartitionOptions& options);

// Adjacency entries among those nodes: one pass over the graph, which leaves no pages mapped.
uint64_t count_entries(const Dataset& data, const PartitionOptions& options);

// The numbers in a partition file, one for every node of the store. Throws Error naming file and line.
Buffer<uint32_t> read_partition_file(const fs::path& file, NodeId num_nodes);

// METIS, multilevel or random, parts from 1 to the number of chosen nodes. Clusters that came out empty are closed up.
Assignment assign_clusters(const Dataset& data, std::span<const NodeId> nodes, uint32_t parts,
                           const PartitionOptions& options, PartitionStages& stages, const WorkBesideMetis& beside);
// The chosen nodes' clusters out of the numbers of a file, renumbered without gaps.
Assignment assign_from_file(std::span<const uint32_t> numbers, std::span<const NodeId> nodes);

}  // namespace cgcn
