// How good a partition is: the figures of the paper's section 3.1 and its entropy histogram (figure 2).
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "partition/partition.h"

namespace cgcn {

struct PartitionQuality {
  uint64_t nodes = 0, links = 0;  // links: edges as people count them; adjacency entries if directed
  uint32_t clusters = 0;
  uint64_t links_cut = 0;  // between clusters: Δ in the paper
  NodeId smallest = 0, largest = 0;
  uint32_t clusters_without_labels = 0;  // in which no node is trained on

  // Batches of q clusters, over the first epoch.
  uint32_t clusters_per_batch = 0, batches = 0;
  double mean_batch_nodes = 0;
  double mean_batch_entries = 0;  // ‖A_BB‖₀: embedding utilisation, section 3.1
  double entries_in_batches = 0;  // the share of all adjacency entries that some batch sees

  // Shannon entropy of the labels in each cluster that has any, in bits; and in clusters of the same sizes drawn at
  // random.
  std::vector<double> entropy, random_entropy;

  double mean_size() const { return static_cast<double>(nodes) / clusters; }
  double balance() const { return largest / mean_size(); }  // the largest over the mean
  double share_kept() const { return links == 0 ? 1 : 1 - static_cast<double>(links_cut) / static_cast<double>(links); }

  nlohmann::json to_json() const;
  std::string to_table() const;  // for people, the histogram below
};

PartitionQuality measure_quality(const ClusterLayout& layout, uint32_t clusters_per_batch, uint64_t seed);

}  // namespace cgcn
