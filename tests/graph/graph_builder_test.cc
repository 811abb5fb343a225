#include "graph/graph_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/random.h"

namespace cgcn {
namespace {

// Brute force: the same rules with maps, on hundreds of random multigraphs.
TEST(GraphBuilder, EqualsBruteForce) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    Random random(trial, Purpose::kTest);
    const NodeId n = 1 + random.below(12);
    const bool weighted = random.below(2) == 1;
    const BuildOptions options{.directed = random.below(2) == 1, .keep_self_loops = random.below(2) == 1};
    EdgeList edges(weighted);
    std::map<std::pair<NodeId, NodeId>, float> entries;
    BuildCounts expected;
    for (uint32_t e = random.below(40); e > 0; --e) {
      const NodeId u = random.below(n), v = random.below(n);
      const auto w = static_cast<float>(1 + random.below(4));
      edges.add(u, v, w);
      ++expected.entries;
      const bool again = !entries.emplace(std::pair{u, v}, 0.0f).second;
      if (u == v && (!again || !options.keep_self_loops))
        ++expected.self_loops;
      else if (again)
        ++expected.duplicates;
      entries[{u, v}] += w;
    }
    std::map<std::pair<NodeId, NodeId>, float> rows;
    for (const auto& [edge, w] : entries) {
      const auto [u, v] = edge;
      if (u == v) {
        if (options.keep_self_loops) rows[edge] = w;
        continue;
      }
      const auto reverse = entries.find({v, u});
      if (options.directed) {
        rows[edge] = w;
      } else if (reverse == entries.end()) {
        ++expected.one_directional;
        rows[edge] = rows[{v, u}] = w;
      } else {
        rows[edge] = 0.5f * (w + reverse->second);
      }
    }
    BuildCounts counts;
    const CsrGraph graph = build_graph(n, edges, options, &counts);
    std::map<std::pair<NodeId, NodeId>, float> built;
    for (NodeId v = 0; v < n; ++v)
      for (size_t i = 0; i < graph.degree(v); ++i)
        built[{v, graph.neighbours(v)[i]}] = weighted ? graph.neighbour_weights(v)[i] : 1;
    if (!weighted)
      for (auto& [edge, w] : rows) w = 1;
    EXPECT_EQ(built, rows) << "trial " << trial;
    EXPECT_EQ(graph.num_entries(), rows.size());
    EXPECT_EQ(counts.entries, expected.entries);
    EXPECT_EQ(counts.duplicates, expected.duplicates);
    EXPECT_EQ(counts.self_loops, expected.self_loops);
    EXPECT_EQ(counts.one_directional, expected.one_directional);
    for (NodeId v = 0; v < n; ++v) EXPECT_TRUE(std::is_sorted(graph.neighbours(v).begin(), graph.neighbours(v).end()));
  }
}

TEST(GraphBuilder, EdgeListKeepsEverythingAcrossChunks) {
  EdgeList edges;
  const NodeId n = 700'000;
  for (NodeId v = 0; v + 1 < n; ++v) edges.add(v, v + 1);
  const CsrGraph graph = build_graph(n, edges, {}, nullptr);
  EXPECT_EQ(graph.num_edges(), n - 1);
  EXPECT_EQ(graph.degree(0), 1u);
  EXPECT_EQ(graph.degree(n / 2), 2u);
}

}  // namespace
}  // namespace cgcn
