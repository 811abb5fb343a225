// The adjacency matrix in cluster order, seen from afar: how many entries lie in each cell of cluster × cluster.
// Most lie on the diagonal if the partition is good (figure 1 of the paper: the A_tt that training keeps).
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "partition/partition.h"

namespace cgcn {

struct LinkPicture {
  std::vector<uint32_t> first_cluster;  // of each group of neighbouring clusters; then p
  std::vector<uint64_t> nodes;          // in each group
  std::vector<uint64_t> entries;        // groups × groups, row by row

  size_t groups() const { return nodes.size(); }
  nlohmann::json to_json() const;
};

// If there are more clusters than `most`, neighbouring ones are put together.
LinkPicture draw_links(const ClusterLayout& layout, uint32_t most = 64);

// How the graph was cut, for a run's folder: quality.h's figures, the size of every cluster, the picture of links.
nlohmann::json describe_clusters(const ClusterLayout& layout, uint32_t clusters_per_batch, uint64_t seed);

}  // namespace cgcn
