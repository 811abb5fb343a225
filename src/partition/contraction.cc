// One node for each cluster of a level; links between two clusters become one, their weights added; links within fall
// away.
#include <numeric>
#include <vector>

#include "common/interrupt.h"
#include "common/threads.h"
#include "partition/level_graph.h"
#include "partition/rating_table.h"

namespace cgcn {
namespace {

constexpr size_t kContractedRows = 1024;  // coarse nodes a thread takes at a time

struct ContractedRows {
  std::vector<NodeId> targets;
  std::vector<uint32_t> weights;
};

// The nodes of each cluster, in rising order: cluster c has members[starts[c]] … members[starts[c + 1]].
struct Members {
  Members(std::span<const NodeId> cluster_of, NodeId num_clusters)
      : starts(size_t{num_clusters} + 1, 0), members(cluster_of.size()) {
    for (const NodeId cluster : cluster_of)
      if (cluster != kNoNode) ++starts[size_t{cluster} + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    Buffer<NodeId> next(num_clusters);
    std::copy_n(starts.begin(), num_clusters, next.begin());
    for (size_t v = 0; v < cluster_of.size(); ++v)
      if (cluster_of[v] != kNoNode) members[next[cluster_of[v]]++] = static_cast<NodeId>(v);
  }
  std::span<const NodeId> of(size_t cluster) const {
    return {members.data() + starts[cluster], size_t{starts[cluster + 1]} - starts[cluster]};
  }
  Buffer<NodeId> starts, members;
};

}  // namespace

uint64_t LevelGraph::total_weight(size_t constraint) const {
  uint64_t total = 0;
  for (NodeId v = 0; v < num_nodes(); ++v)
    if (has(v)) total += node_weight(v, constraint);
  return total;
}

LevelGraph contract(const LevelGraph& graph, std::span<const NodeId> cluster_of, NodeId num_clusters) {
  const Members members(cluster_of, num_clusters);
  LevelGraph coarse;
  coarse.num_constraints = graph.num_constraints;
  for (size_t c = 0; c < graph.num_constraints; ++c) coarse.node_weights[c] = Buffer<uint32_t>(num_clusters);
  Buffer<EdgeOffset> offsets(size_t{num_clusters} + 1);
  offsets[0] = 0;
  std::vector<ContractedRows> blocks((num_clusters + kContractedRows - 1) / kContractedRows);
  graph.with_weights([&](auto weight_of) {
    parallel_blocks(num_clusters, kContractedRows, [&](size_t begin, size_t end) {
      RatingTable& table = rating_table();
      ContractedRows& rows = blocks[begin / kContractedRows];
      for (size_t cluster = begin; cluster < end; ++cluster) {
        uint64_t entries = 0;
        std::array<uint64_t, kMostConstraints> weight{};
        for (const NodeId v : members.of(cluster)) {
          entries += graph.degree(v);
          for (size_t c = 0; c < graph.num_constraints; ++c) weight[c] += graph.node_weight(v, c);
        }
        for (size_t c = 0; c < graph.num_constraints; ++c)
          coarse.node_weights[c][cluster] = static_cast<uint32_t>(std::min<uint64_t>(weight[c], UINT32_MAX));
        table.begin(std::min<uint64_t>(entries, num_clusters));
        for (const NodeId v : members.of(cluster)) add_neighbours(graph, v, cluster_of.data(), weight_of, table);
        size_t length = 0;
        for (size_t i = 0; i < table.size(); ++i) {
          if (table[i].key == cluster) continue;
          ++length;
          rows.targets.push_back(table[i].key);
          rows.weights.push_back(table[i].weight);
        }
        offsets[cluster + 1] = length;
      }
    });
  });
  throw_if_interrupted();
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  Buffer<NodeId> targets(offsets[num_clusters]);
  Buffer<uint32_t> weights(offsets[num_clusters]);
  parallel_blocks(blocks.size(), 1, [&](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) {
      std::copy(blocks[b].targets.begin(), blocks[b].targets.end(), targets.begin() + offsets[b * kContractedRows]);
      std::copy(blocks[b].weights.begin(), blocks[b].weights.end(), weights.begin() + offsets[b * kContractedRows]);
      blocks[b] = {};
    }
  });
  coarse.offsets = std::move(offsets);
  coarse.targets = std::move(targets);
  coarse.edge_weights = std::move(weights);
  return coarse;
}

}  // namespace cgcn
