#include "partition/multilevel.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/threads.h"
#include "partition/label_propagation.h"
#include "partition/refinement.h"
#include "random_dataset.h"
#include "support.h"

namespace cgcn {
namespace {

std::vector<NodeId> every_node(const Dataset& data) {
  std::vector<NodeId> nodes(data.num_nodes());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  return nodes;
}

Dataset dataset_of(NodeId n, EdgeList& edges, bool directed = false) {
  Dataset data;
  data.graph = build_graph(n, edges, {.directed = directed}, nullptr);
  return data;
}

// Every node in one cluster, none empty, none above the bound; weights 1.
void expect_sound(std::span<const uint32_t> clusters, uint64_t nodes, uint32_t parts, float imbalance) {
  std::vector<uint64_t> sizes(parts, 0);
  uint64_t found = 0;
  for (const uint32_t cluster : clusters) {
    if (cluster == kNoNode) continue;
    ASSERT_LT(cluster, parts);
    ++sizes[cluster];
    ++found;
  }
  EXPECT_EQ(found, nodes);
  const double mean = static_cast<double>(nodes) / parts;
  const double most = std::max(std::ceil(mean), std::floor(double{imbalance} * mean));
  for (const uint64_t size : sizes) {
    EXPECT_GE(size, 1u);
    EXPECT_LE(static_cast<double>(size), most);
  }
}

MultilevelRun run_on(const Dataset& data, uint32_t parts, PartitionOptions options = {}) {
  return partition_multilevel(make_level_graph(data, every_node(data), options.node_weights), parts, options);
}

double kept_share(const CsrGraph& graph, std::span<const uint32_t> clusters) {
  uint64_t kept = 0, all = 0;
  for (NodeId v = 0; v < graph.num_nodes(); ++v)
    for (const NodeId u : graph.neighbours(v)) {
      if (u == v) continue;
      ++all;
      kept += clusters[u] == clusters[v] ? 1 : 0;
    }
  return all == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(all);
}

// Random graphs of many kinds: sparse and dense, with hubs, isolated nodes, separate pieces, long paths, directed.
Dataset fuzzed_graph(uint32_t seed) {
  Random random(seed, Purpose::kTest, 91);
  const NodeId n = 2 + random.below(random.below(3) == 0 ? 6000 : 300);
  EdgeList edges(random.below(3) == 0);
  const auto weight = [&] { return random.below(9) == 0 ? 0.0f : 0.01f + 10 * random.uniform(); };
  const uint32_t kind = random.below(5), pieces = 1 + random.below(4);
  const uint32_t count = random.below(8) * n;
  for (uint32_t i = 0; i < count; ++i) {
    NodeId u = random.below(n), v = random.below(n);
    if (kind == 1) v = random.below(1 + random.below(5));                    // hubs
    if (kind == 2) v = std::min<NodeId>(n - 1, u + 1 + random.below(3));     // a long strip
    if (kind == 3) v = u / 16 * 16 + random.below(std::min<NodeId>(16, n));  // small communities
    if (v >= n || (kind == 4 && u % pieces != v % pieces)) continue;
    edges.add(u, v, weight());
  }
  return dataset_of(n, edges, random.below(3) == 0);
}

TEST(Multilevel, FuzzedGraphsGiveSoundPartitions) {
  log::set_level(log::Level::kQuiet);
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = fuzzed_graph(seed);
    Random random(seed, Purpose::kTest, 92);
    const uint32_t parts = 2 + random.below(random.below(2) == 0 ? 12 : data.num_nodes() - 1);
    if (parts > data.num_nodes()) continue;
    PartitionOptions options;
    options.seed = seed;
    options.imbalance = std::array{1.001f, 1.03f, 1.5f}[random.below(3)];
    const MultilevelRun run = run_on(data, parts, options);
    expect_sound(run.clusters, data.num_nodes(), parts, options.imbalance);
    ASSERT_FALSE(run.levels.empty());
    EXPECT_EQ(run.levels[0].nodes, data.num_nodes());
    if (HasFailure()) return;
  }
}

TEST(Multilevel, AwkwardGraphsWork) {
  log::set_level(log::Level::kQuiet);
  const auto star = [](NodeId n, EdgeList& edges) {
    for (NodeId v = 1; v < n; ++v) edges.add(0, v);
  };
  const auto none = [](NodeId, EdgeList&) {};
  const auto pairs = [](NodeId n, EdgeList& edges) {
    for (NodeId v = 0; v + 1 < n; v += 2) edges.add(v, v + 1);
  };
  const auto complete = [](NodeId n, EdgeList& edges) {
    for (NodeId u = 0; u < std::min(n, 400u); ++u)
      for (NodeId v = 0; v < u; ++v) edges.add(u, v);
  };
  const auto path = [](NodeId n, EdgeList& edges) {
    for (NodeId v = 0; v + 1 < n; ++v) edges.add(v, v + 1);
  };
  const std::vector<std::function<void(NodeId, EdgeList&)>> shapes{star, none, pairs, complete, path};
  for (size_t shape = 0; shape < shapes.size(); ++shape)
    for (const NodeId n : {2u, 3u, 7u, 50u, 5000u})
      for (const uint32_t parts : {2u, 3u, 6u, 48u, 300u, 4999u}) {
        if (parts > n) continue;
        SCOPED_TRACE(fmt::format("shape {} n {} parts {}", shape, n, parts));
        EdgeList edges;
        shapes[shape](n, edges);
        const Dataset data = dataset_of(n, edges);
        expect_sound(run_on(data, parts).clusters, n, parts, 1.03f);
      }
}

// One node with an edge to every other; these lie on paths of 50.
Dataset hub_over_paths(NodeId n) {
  EdgeList edges;
  for (NodeId v = 1; v < n; ++v) edges.add(0, v);
  for (NodeId v = 1; v + 1 < n; ++v)
    if (v % 50 != 0) edges.add(v, v + 1);
  return dataset_of(n, edges);
}

TEST(Multilevel, AHubOfAMillionLinks) {
  log::set_level(log::Level::kQuiet);
  constexpr NodeId kNodes = 1'000'001;
  const Dataset data = hub_over_paths(kNodes);
  const MultilevelRun run = run_on(data, 1000);
  expect_sound(run.clusters, kNodes, 1000, 1.03f);
  EXPECT_GT(kept_share(data.graph, run.clusters), 0.4);  // all but the hub's edges and a few: 0.49
}

TEST(Multilevel, AHubThatStaysOnDisk) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = hub_over_paths(100'001);
  const std::vector<NodeId> nodes = every_node(data);
  const MultilevelRun run = run_on(data, 100);
  const MultilevelRun on_disk =
      partition_multilevel(make_level_graph(data, nodes, NodeWeights::kUniform, /*memory=*/1), 100, {});
  EXPECT_TRUE(std::equal(run.clusters.begin(), run.clusters.end(), on_disk.clusters.begin()));
}

// Communities of `size` nodes, each with `inside` edges per node within and `between` edges per node to anywhere.
Dataset planted(NodeId communities, NodeId size, uint32_t inside, uint32_t between, uint32_t seed = 1) {
  Random random(seed, Purpose::kTest, 93);
  const NodeId n = communities * size;
  std::vector<NodeId> name(n);
  std::iota(name.begin(), name.end(), NodeId{0});
  random.shuffle(std::span<NodeId>(name));
  EdgeList edges;
  for (NodeId v = 0; v < n; ++v) {
    for (uint32_t i = 0; i < inside; ++i) edges.add(name[v], name[v / size * size + random.below(size)]);
    for (uint32_t i = 0; i < between; ++i) edges.add(name[v], name[random.below(n)]);
  }
  return dataset_of(n, edges);
}

TEST(Multilevel, FindsPlantedCommunities) {
  log::set_level(log::Level::kQuiet);
  for (const auto& [communities, size] : {std::pair<NodeId, NodeId>{20, 300}, {400, 50}}) {
    const Dataset data = planted(communities, size, 8, 2);
    const MultilevelRun run = run_on(data, communities);
    expect_sound(run.clusters, data.num_nodes(), communities, 1.03f);
    EXPECT_GT(kept_share(data.graph, run.clusters), 0.74);  // as planted: about 0.77
    EXPECT_GE(run.levels.size(), 2u);
    EXPECT_LT(run.levels[1].nodes, data.num_nodes() / 3);
  }
}

TEST(Multilevel, TheSameSeedGivesTheSameClustersOnAnyNumberOfThreads) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = planted(300, 60, 6, 3);
  const auto clusters = [&](int threads, uint64_t seed) {
    const ThreadCountScope scope(threads);
    PartitionOptions options;
    options.seed = seed;
    const MultilevelRun run = run_on(data, 310, options);
    return std::vector<uint32_t>(run.clusters.begin(), run.clusters.end());
  };
  const std::vector<uint32_t> once = clusters(1, 5);
  EXPECT_EQ(once, clusters(2, 5));
  EXPECT_EQ(once, clusters(5, 5));
  EXPECT_NE(once, clusters(1, 6));
}

TEST(Multilevel, HeavyLinksHoldNodesTogether) {
  log::set_level(log::Level::kQuiet);
  EdgeList edges(true);
  for (NodeId i = 0; i < 20000; ++i) edges.add(i, (i + 1) % 20000, i % 2 == 0 ? 100.0f : 0.001f);
  const Dataset data = dataset_of(20000, edges);
  const MultilevelRun run = run_on(data, 40);
  for (NodeId i = 0; i < 20000; i += 2) ASSERT_EQ(run.clusters[i], run.clusters[i + 1]) << i;
}

void label_every_fourth(Dataset& data) {
  std::vector<uint8_t> split(data.num_nodes(), 255);
  for (NodeId v = 0; v < data.num_nodes(); v += 4) split[v] = 0;
  data.split = split;
  data.labels = Labels::single(std::vector<int32_t>(data.num_nodes(), 0), 2);
}

TEST(Multilevel, NodeWeightsAreBalanced) {
  log::set_level(log::Level::kQuiet);
  Dataset data = planted(40, 100, 6, 2);
  const NodeId n = data.num_nodes();
  label_every_fourth(data);
  PartitionOptions options;
  options.node_weights = NodeWeights::kDegree;
  std::vector<uint64_t> entries(16, 0);
  const MultilevelRun by_degree = run_on(data, 16, options);
  for (NodeId v = 0; v < n; ++v) entries[by_degree.clusters[v]] += data.graph.degree(v) + 1;
  const double mean = static_cast<double>(data.graph.num_entries() + n) / 16;
  EXPECT_LE(static_cast<double>(*std::max_element(entries.begin(), entries.end())), 1.031 * mean);

  options.node_weights = NodeWeights::kLabelled;
  std::vector<uint32_t> labelled(16, 0);
  const MultilevelRun by_label = run_on(data, 16, options);
  expect_sound(by_label.clusters, n, 16, 1.03f);
  for (NodeId v = 0; v < n; v += 4) ++labelled[by_label.clusters[v]];
  const std::vector<NodeId> nodes = every_node(data);
  const MultilevelRun on_disk =
      partition_multilevel(make_level_graph(data, nodes, NodeWeights::kLabelled, /*memory=*/1), 16, options);
  EXPECT_TRUE(std::equal(by_label.clusters.begin(), by_label.clusters.end(), on_disk.clusters.begin()));
  EXPECT_LE(*std::max_element(labelled.begin(), labelled.end()), 66u);  // 62.5 on average
}

TEST(Multilevel, AnInterruptStopsIt) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = planted(2000, 100, 8, 8);
  LevelGraph graph = make_level_graph(data, every_node(data), NodeWeights::kUniform);
  std::thread user([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    request_interrupt();
  });
  EXPECT_THROW(partition_multilevel(std::move(graph), 2000, {}), Interrupted);
  user.join();
  clear_interrupt();
}

// The same bits in any memory: all in memory, or read from disk in every pass, with a contraction of many stretches.
TEST(Multilevel, AGraphThatStaysOnDiskGivesTheSameClusters) {
  log::set_level(log::Level::kQuiet);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Dataset data = seed == 0 ? planted(600, 40, 6, 3) : fuzzed_graph(seed);
    std::vector<NodeId> nodes;
    for (NodeId v = 0; v < data.num_nodes(); ++v)
      if (seed % 3 == 1 || v % 4 != 1) nodes.push_back(v);
    if (nodes.size() < 8) continue;
    PartitionOptions options;
    options.node_weights = std::array{NodeWeights::kUniform, NodeWeights::kLabelled, NodeWeights::kDegree}[seed % 3];
    label_every_fourth(data);
    const auto clusters = [&](uint64_t memory, int threads) {
      const ThreadCountScope scope(threads);
      LevelGraph graph = make_level_graph(data, nodes, options.node_weights, memory);
      EXPECT_EQ(graph.streamed > 0, memory == 1 && !data.graph.directed());
      const MultilevelRun run = partition_multilevel(std::move(graph), seed == 0 ? 600 : 4, options);
      return std::vector<uint32_t>(run.clusters.begin(), run.clusters.end());
    };
    const std::vector<uint32_t> in_memory = clusters(UINT64_MAX, 1);
    EXPECT_EQ(in_memory, clusters(1, 1));
    EXPECT_EQ(in_memory, clusters(1, 3));
    if (HasFailure()) return;
  }
}

// What is kept from pass to pass is what a pass from nothing would find: the cut that refining returns is the one that
// is there, it never grows, and clusters weigh what their nodes do.
TEST(Multilevel, RefiningReturnsTheCutThatIsThere) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = fuzzed_graph(seed);
    const LevelGraph graph = make_level_graph(data, every_node(data), NodeWeights::kUniform);
    Random random(seed, Purpose::kTest, 94);
    Clusters clusters;
    clusters.count = 2 + random.below(std::min<NodeId>(40, data.num_nodes() - 1));
    clusters.of = Buffer<uint32_t>(data.num_nodes());
    for (size_t v = 0; v < clusters.of.size(); ++v) clusters.of[v] = static_cast<uint32_t>(v % clusters.count);
    clusters.weigh(graph);
    clusters.most[0] = (data.num_nodes() + clusters.count - 1) / clusters.count + random.below(3);
    const auto cut = [&] {
      uint64_t sum = 0;
      graph.with_weights([&](auto weight_of) {
        for (NodeId v = 0; v < graph.num_nodes(); ++v)
          for (EdgeOffset e = graph.row_begin(v); e < graph.row_end(v); ++e)
            if (clusters.of[graph.target(e)] != clusters.of[v]) sum += weight_of(e);
      });
      return sum;
    };
    const uint64_t before = cut();
    const uint64_t after = refine(graph, clusters, {1 + random.below(8), random.below(4)}, seed);
    EXPECT_EQ(after, cut());
    EXPECT_LE(after, before);
    const std::vector<uint64_t> weights = clusters.weight[0];
    clusters.weigh(graph);
    EXPECT_EQ(weights, clusters.weight[0]);
    EXPECT_LE(*std::max_element(weights.begin(), weights.end()), clusters.most[0]);
    if (HasFailure()) return;
  }
}

// Weights are 32 bits: clusters end before their sum does.
TEST(Multilevel, WeightsOfCoarseNodesDoNotOverflow) {
  const Dataset data = planted(10, 40, 8, 1);
  LevelGraph graph = make_level_graph(data, every_node(data), NodeWeights::kUniform);
  graph.node_weights[0] = Buffer<uint32_t>(data.num_nodes(), uint32_t{1} << 30);
  ClusteringLimits limits;
  limits.most_weight = {uint64_t{1} << 40, 0};
  const Clustering clustering = propagate_labels(graph, limits);
  const LevelGraph coarse = contract(graph, clustering.cluster_of, clustering.num_clusters);
  EXPECT_LT(clustering.num_clusters, data.num_nodes());
  std::vector<uint64_t> weight(clustering.num_clusters, 0);
  for (const NodeId cluster : clustering.cluster_of) weight[cluster] += uint64_t{1} << 30;
  for (NodeId c = 0; c < coarse.num_nodes(); ++c) EXPECT_EQ(coarse.node_weight(c), weight[c]);
  EXPECT_EQ(coarse.total_weight(), graph.total_weight());
}

// Rows that begin after the first 2³² entries. The row before them is as long as that, holds nothing but loops, is not
// partitioned, and takes no memory.
TEST(Multilevel, RowsBeyondFourBillionEntriesAreRead) {
  log::set_level(log::Level::kQuiet);
  const Dataset small = planted(60, 50, 6, 2);
  const uint64_t skipped = (uint64_t{1} << 32) + 12345, bytes = (skipped + small.graph.num_entries()) * sizeof(NodeId);
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "no address space for it";
  auto* const targets = static_cast<NodeId*>(mapped);
  for (uint64_t e = 0; e < small.graph.num_entries(); ++e) targets[skipped + e] = small.graph.targets()[e] + 1;
  std::vector<EdgeOffset> offsets{0};
  for (const EdgeOffset offset : small.graph.offsets()) offsets.push_back(skipped + offset);
  Dataset data;
  data.graph = CsrGraph(offsets, {{targets, bytes / sizeof(NodeId)}, std::shared_ptr<const void>()}, {}, false);
  std::vector<NodeId> nodes(small.num_nodes());
  std::iota(nodes.begin(), nodes.end(), NodeId{1});
  const MultilevelRun far = partition_multilevel(make_level_graph(data, nodes, NodeWeights::kDegree, 1), 60, {});
  const MultilevelRun near =
      partition_multilevel(make_level_graph(small, every_node(small), NodeWeights::kDegree), 60, {});
  EXPECT_TRUE(std::equal(near.clusters.begin(), near.clusters.end(), far.clusters.begin()));
  EXPECT_EQ(far.levels[0].entries, small.graph.num_entries());
  ::munmap(mapped, bytes);
}

TEST(Multilevel, ContractionAddsUpWhatLiesBetweenClusters) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = fuzzed_graph(seed);
    const LevelGraph graph = make_level_graph(data, every_node(data), NodeWeights::kDegree);
    ClusteringLimits limits;
    limits.most_weight = {12, 0};
    limits.seed = seed;
    const Clustering clustering = propagate_labels(graph, limits);
    const LevelGraph coarse = contract(graph, clustering.cluster_of, clustering.num_clusters);
    std::vector<uint64_t> weight(clustering.num_clusters, 0), nodes(clustering.num_clusters, 0);
    std::map<std::pair<NodeId, NodeId>, uint64_t> expected, found;
    for (NodeId v = 0; v < graph.num_nodes(); ++v) {
      const NodeId c = clustering.cluster_of[v];
      ASSERT_LT(c, clustering.num_clusters);
      weight[c] += graph.node_weight(v);
      ++nodes[c];
      graph.with_weights([&](auto weight_of) {
        for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[size_t{v} + 1]; ++e)
          if (const NodeId other = clustering.cluster_of[graph.targets[e]]; other != c)
            expected[{c, other}] += weight_of(e);
      });
    }
    for (NodeId c = 0; c < coarse.num_nodes(); ++c) {
      EXPECT_EQ(coarse.node_weight(c), weight[c]);
      EXPECT_GE(nodes[c], 1u);
      EXPECT_TRUE(nodes[c] == 1 || weight[c] <= 12);
      for (EdgeOffset e = coarse.offsets[c]; e < coarse.offsets[size_t{c} + 1]; ++e)
        found[{c, coarse.targets[e]}] += coarse.edge_weights[e];
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(found.size(), coarse.num_entries());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cgcn
