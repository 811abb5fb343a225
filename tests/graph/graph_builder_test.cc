#include "graph/graph_builder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/threads.h"

namespace cgcn {
namespace {

// Brute force: the same rules with maps, on hundreds of random multigraphs.
TEST(GraphBuilder, EqualsBruteForce) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    Random random(trial, Purpose::kTest);
    const NodeId n = 1 + random.below(12);
    const bool weighted = random.below(2) == 1;
    const BuildOptions options{.directed = random.below(2) == 1,
                               .keep_self_loops = random.below(2) == 1,
                               .entries_at_once = random.below(2) * (1 + random.below(20))};
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

// Rows that are passed on to a file are never in memory together: the source (8 bytes per edge), and little more.
TEST(GraphBuilder, MemoryIsNearTheSizeOfTheRows) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  constexpr NodeId kNodes = 1'000'000;
  constexpr uint64_t kEdges = 24'000'000;
  const pid_t child = ::fork();
  if (child == 0) {
    set_thread_count(1);  // other threads stay behind in the parent
    const uint64_t before = memory_figures().anonymous;
    EdgeList edges;
    Random random(1, Purpose::kTest);
    for (uint64_t i = 0; i < kEdges; ++i) edges.add(random.below(kNodes), random.below(kNodes));
    uint64_t peak = 0, entries = 0;
    const BuiltRows rows = build_rows(kNodes, edges, {}, nullptr, [&](auto targets, auto) {
      peak = std::max(peak, memory_figures().anonymous - before);  // a range is there whole, and the source with it
      entries += targets.size();
    });
    const uint64_t store = 4 * entries + 8 * uint64_t{kNodes};
    constexpr uint64_t kFixed = uint64_t{32} << 20;
    std::printf("peak %.1f MB for rows of %.1f MB\n", static_cast<double>(peak) / 1e6,
                static_cast<double>(store) / 1e6);
    std::fflush(stdout);
    ::_exit(rows.entries == entries && peak < store * 13 / 10 + kFixed ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
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

// Ctrl-C comes during the given visit of the edges; a builder visits them once to count, then once for each range.
class InterruptedEdges final : public EdgeSource {
 public:
  explicit InterruptedEdges(uint32_t at) : at_(at) {}
  bool weighted() const override { return false; }
  void visit(const std::function<void(const EdgeRun&)>& use) const override {
    const NodeId from[] = {0, 1}, to[] = {1, 2};
    use({from, to, nullptr, 2});
    if (++visits_ == at_) request_interrupt();
    use({from + 1, to, nullptr, 1});
  }
  uint32_t visits() const { return visits_; }

 private:
  uint32_t at_;
  mutable uint32_t visits_ = 0;
};

TEST(GraphBuilder, StopsWhenInterrupted) {
  for (uint32_t at = 1; at <= 3; ++at) {
    InterruptedEdges edges(at);
    EXPECT_THROW(build_graph(3, edges, {.entries_at_once = 2}, nullptr), Interrupted) << at;
    EXPECT_EQ(edges.visits(), at);
    clear_interrupt();
  }
}

}  // namespace
}  // namespace cgcn
