// Every node of a level with the clusters of its neighbours: the loop that refining and balancing share.
#pragma once

#include "partition/batches.h"
#include "partition/rating_table.h"
#include "partition/refinement.h"

namespace cgcn {

// Runs decide(v, table of v's clusters, weight to its own) for every node for which wanted(v), on all threads.
template <class Wanted, class Decide>
void rate_nodes(const LevelGraph& graph, const Clusters& clusters, Wanted&& wanted, Decide&& decide) {
  graph.with_weights([&](auto weight_of) {
    for_each_block(graph, clusters.of.size(), [&](size_t begin, size_t end) {
      RatingTable& table = rating_table();
      for (size_t i = begin; i < end; ++i) {
        const auto v = static_cast<NodeId>(i);
        if (i + 2 < end && wanted(v + 2)) prefetch_groups(graph, v + 2, clusters.of.data());
        if (!wanted(v)) continue;
        table.begin(std::min<uint64_t>(graph.degree(v), clusters.count));
        add_neighbours(graph, v, clusters.of.data(), weight_of, table);
        decide(v, table, table.weight_of(clusters.of[v]));
      }
    });
  });
}

// One sum for each run of nodes that a thread takes.
inline size_t count_blocks(size_t nodes) { return (nodes + kDecidedNodes - 1) / kDecidedNodes; }

}  // namespace cgcn
