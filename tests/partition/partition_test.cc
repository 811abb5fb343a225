#include "partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include "common/log.h"
#include "common/threads.h"
#include "graph/npy.h"
#include "normalised_dense.h"
#include "support.h"

namespace cgcn {
namespace {

using test::random_dataset;
using test::TemporaryFolder;

Store write_random(const TemporaryFolder& folder, uint32_t seed) {
  write_store(folder / "s", random_dataset(seed), StagedDirectory::Existing::kReplace);
  return Store(folder / "s");
}

PartitionOptions random_options(uint32_t seed) {
  Random random(seed, Purpose::kTest, 78);
  PartitionOptions options;
  options.parts = random.below(3) == 0 ? random.below(80) : random.below(8);
  options.method = std::array{PartitionMethod::kMetis, PartitionMethod::kMetisRecursive, PartitionMethod::kRandom,
                              PartitionMethod::kMultilevel}[random.below(4)];
  options.transductive = random.below(2) == 0;
  options.node_weights =
      std::array{NodeWeights::kUniform, NodeWeights::kLabelled, NodeWeights::kDegree}[random.below(3)];
  if (options.method == PartitionMethod::kMetis && random.below(3) == 0)
    options.objective = PartitionObjective::kVolume;
  options.seed = seed;
  return options;
}

// Row r of the layout is node order[r] of the store, in everything.
void expect_layout_of(const ClusterLayout& layout, const Dataset& data, bool transductive) {
  const Dataset& laid = layout.data;
  std::set<NodeId> expected;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (transductive || data.role(v) == Role::kTrain) expected.insert(v);
  ASSERT_EQ(layout.order.size(), expected.size());
  EXPECT_TRUE(std::ranges::equal(std::set<NodeId>(layout.order.begin(), layout.order.end()), expected));
  for (uint32_t c = 0; c < layout.num_clusters(); ++c)
    EXPECT_LT(layout.cluster_offsets[c], layout.cluster_offsets[c + 1]) << "an empty cluster";
  const auto adjacency = test::dense_adjacency(data.graph), laid_adjacency = test::dense_adjacency(laid.graph);
  const auto features = test::dense_features(data.features), laid_features = test::dense_features(laid.features);
  EXPECT_EQ(laid.graph.directed(), data.graph.directed());
  for (NodeId r = 0; r < laid.num_nodes(); ++r) {
    const NodeId v = layout.order[r];
    for (NodeId s = 0; s < laid.num_nodes(); ++s) EXPECT_EQ(laid_adjacency[r][s], adjacency[v][layout.order[s]]);
    EXPECT_TRUE(std::ranges::is_sorted(laid.graph.neighbours(r)));
    EXPECT_EQ(laid_features[r], features[v]);
    EXPECT_EQ(laid.role(r), data.role(v));
    EXPECT_EQ(laid.ids.text(r), data.ids.text(v));
    if (!data.graph_ids.empty()) {
      EXPECT_EQ(laid.graph_ids[r], data.graph_ids[v]);
    }
    if (data.labels.multi_label()) {
      EXPECT_TRUE(std::ranges::equal(laid.labels.bit_row(r), data.labels.bit_row(v)));
    } else {
      EXPECT_EQ(laid.labels.class_of(r), data.labels.class_of(v));
    }
  }
}

TEST(Partition, LayoutsOfRandomGraphsAreTheStoreInClusterOrder) {
  log::set_level(log::Level::kQuiet);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const TemporaryFolder folder;
    const Store store = write_random(folder, seed);
    const PartitionOptions options = random_options(seed);
    EXPECT_FALSE(find_partition(store, options).has_value());
    const PartitionResult made = ensure_partition(store, options);
    EXPECT_FALSE(made.reused);
    const std::optional<ClusterLayout> found = find_partition(store, options);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(std::ranges::equal(found->order, made.layout.order));
    expect_layout_of(made.layout, store.dataset(), options.transductive);
    if (options.parts > 0) {
      EXPECT_LE(made.layout.num_clusters(), options.parts);
    }
    const PartitionResult again = ensure_partition(store, options);
    EXPECT_TRUE(again.reused);
    EXPECT_TRUE(std::ranges::equal(again.layout.order, made.layout.order));
    PartitionOptions scarce = options;
    scarce.replace = true;
    scarce.memory = 1 + 64 * (seed % 64);  // arrays are read in the store's order, for a few rows at a time
    const PartitionResult small = ensure_partition(store, scarce);
    EXPECT_FALSE(small.reused);
    EXPECT_TRUE(std::ranges::equal(small.layout.order, made.layout.order));
    EXPECT_EQ(small.layout.data.content_hash, made.layout.data.content_hash);
    expect_layout_of(small.layout, store.dataset(), options.transductive);
    if (HasFailure()) return;
  }
}

// auto: by the number of edges alone, and what METIS alone can do stays with it.
TEST(Partition, LargeGraphsGoToTheMultilevelPartitioner) {
  const auto chosen = [](uint64_t entries, bool directed, const PartitionOptions& options = {}) {
    Dataset data;
    data.graph = CsrGraph(std::vector<EdgeOffset>{0, entries, entries}, Buffer<NodeId>(entries), {}, directed);
    return options.settled_for(data).method;
  };
  EXPECT_EQ(chosen(kMultilevelEntries - 2, false), PartitionMethod::kMetis);
  EXPECT_EQ(chosen(kMultilevelEntries, false), PartitionMethod::kMultilevel);
  EXPECT_EQ(chosen(kMultilevelEntries / 2 - 1, true), PartitionMethod::kMetis);
  EXPECT_EQ(chosen(kMultilevelEntries / 2, true), PartitionMethod::kMultilevel);
  PartitionOptions options;
  options.objective = PartitionObjective::kVolume;
  EXPECT_EQ(chosen(kMultilevelEntries, false, options), PartitionMethod::kMetis);
  options.from = "clusters.txt";
  EXPECT_EQ(chosen(kMultilevelEntries, false, options), PartitionMethod::kFile);
  options = {};
  options.method = PartitionMethod::kMetis;
  EXPECT_EQ(chosen(kMultilevelEntries, false, options), PartitionMethod::kMetis);
}

// As after a copy of one store's folders into another's.
TEST(Partition, TheProductOfOtherContentIsNotTaken) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  const Normalisation mean{NormalisationKind::kMean, 1};
  Dataset data = random_dataset(3);
  const auto product_of = [&](const char* name, float value) {
    data.features = FeatureMatrix::dense(std::vector<float>(data.num_nodes(), value), 1);
    write_store(folder / name, data, StagedDirectory::Existing::kRefuse);
    return test::dense_features(aggregated_features(Store(folder / name), mean));
  };
  product_of("ones", 1);
  const auto twos = product_of("twos", 2);
  fs::remove_all(folder / "twos/cache");
  fs::copy(folder / "ones/cache", folder / "twos/cache", fs::copy_options::recursive);
  EXPECT_EQ(test::dense_features(aggregated_features(Store(folder / "twos"), mean)), twos);
}

TEST(Partition, AggregatedFeaturesAreTheProduct) {
  log::set_level(log::Level::kQuiet);
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const TemporaryFolder folder;
    const Store store = write_random(folder, seed);
    const ClusterLayout layout = ensure_partition(store, random_options(seed)).layout;
    const Normalisation normalisation{test::kAllNormalisations[seed % 7], 0.5f};
    const auto expect_product = [&](const FeatureMatrix& product, const CsrGraph& graph,
                                    const FeatureMatrix& features) {
      const auto matrix = test::normalise_densely(test::dense_adjacency(graph), normalisation);
      const auto input = test::dense_features(features), output = test::dense_features(product);
      ASSERT_EQ(product.rows(), graph.num_nodes());
      ASSERT_EQ(product.columns(), features.columns());
      for (size_t i = 0; i < matrix.size(); ++i)
        for (size_t c = 0; c < product.columns(); ++c) {
          double sum = 0;
          for (size_t j = 0; j < matrix.size(); ++j) sum += matrix[i][j] * input[j][c];
          EXPECT_NEAR(output[i][c], sum, 2e-6 * (1 + std::abs(sum)) * (1 + graph.degree(static_cast<NodeId>(i))));
        }
    };
    for (int time = 0; time < 2; ++time) {  // computed, then found
      expect_product(aggregated_features(layout, normalisation), layout.data.graph, layout.data.features);
      expect_product(aggregated_features(store, normalisation), store.dataset().graph, store.dataset().features);
    }
    const auto whole = test::dense_features(aggregated_features(store, normalisation));
    fs::remove_all(store.path() / "cache");
    EXPECT_EQ(test::dense_features(aggregated_features(store, normalisation, /*memory=*/1)), whole);  // in many chunks
    if (HasFailure()) return;
  }
}

// A store of n nodes with these edges; all nodes are training nodes unless a split is given.
Store write_graph(const fs::path& path, NodeId n, EdgeList& edges, bool directed = false,
                  std::vector<uint8_t> split = {}) {
  Dataset data;
  data.name = "made";
  data.graph = build_graph(n, edges, {.directed = directed}, nullptr);
  data.features = FeatureMatrix::dense(std::vector<float>(n, 1.0f), 1);
  data.labels = Labels::single(std::vector<int32_t>(n, 0), 2);
  data.split = split.empty() ? std::vector<uint8_t>(n, 0) : std::move(split);
  write_store(path, data, StagedDirectory::Existing::kReplace);
  return Store(path);
}

// `count` rings of `size` nodes, each joined to the next by one edge of the given weight.
EdgeList chain_of_rings(NodeId count, NodeId size, float inside = 1, float between = 1) {
  EdgeList edges(true);
  for (NodeId c = 0; c < count; ++c) {
    for (NodeId i = 0; i < size; ++i) edges.add(c * size + i, c * size + (i + 1) % size, inside);
    if (c + 1 < count) edges.add(c * size, (c + 1) * size, between);
  }
  return edges;
}

size_t entries_cut(const ClusterLayout& layout) {
  size_t cut = 0;
  const auto cluster = [&](NodeId r) {
    return std::upper_bound(layout.cluster_offsets.begin(), layout.cluster_offsets.end(), r) -
           layout.cluster_offsets.begin();
  };
  for (NodeId r = 0; r < layout.data.num_nodes(); ++r)
    for (const NodeId s : layout.data.graph.neighbours(r)) cut += cluster(r) != cluster(s) ? 1 : 0;
  return cut;
}

TEST(Partition, PartitionersFindTheCommunitiesDirectedOrNot) {
  log::set_level(log::Level::kQuiet);
  for (const bool directed : {false, true}) {
    const TemporaryFolder folder;
    EdgeList edges = chain_of_rings(8, 20);
    const Store store = write_graph(folder / "s", 160, edges, directed);
    for (const PartitionMethod method :
         {PartitionMethod::kMetis, PartitionMethod::kMetisRecursive, PartitionMethod::kMultilevel}) {
      PartitionOptions options;
      options.parts = 8;
      options.method = method;
      const ClusterLayout layout = ensure_partition(store, options).layout;
      EXPECT_EQ(layout.num_clusters(), 8u);
      EXPECT_LE(entries_cut(layout), directed ? 24u : 48u);
      EXPECT_EQ(layout.data.graph.directed(), directed);
    }
  }
}

TEST(Partition, HeavyLinksHoldNodesTogether) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  // A ring of 40 in which every other edge is heavy: pairs of nodes that belong together.
  EdgeList edges(true);
  for (NodeId i = 0; i < 40; ++i) edges.add(i, (i + 1) % 40, i % 2 == 0 ? 100.0f : 0.001f);
  const Store store = write_graph(folder / "s", 40, edges);
  PartitionOptions options;
  options.parts = 4;
  const ClusterLayout layout = ensure_partition(store, options).layout;
  std::vector<uint32_t> cluster(40);
  for (uint32_t c = 0; c < layout.num_clusters(); ++c)
    for (NodeId r = layout.cluster_offsets[c]; r < layout.cluster_offsets[c + 1]; ++r) cluster[layout.order[r]] = c;
  for (NodeId i = 0; i < 40; i += 2) EXPECT_EQ(cluster[i], cluster[i + 1]) << i;
}

TEST(Partition, LabelledNodesAreSpreadWhereAsked) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  EdgeList edges = chain_of_rings(16, 25);
  std::vector<uint8_t> split(400, 255);
  for (NodeId v = 0; v < 100; ++v) split[v] = 0;  // all in the first four rings
  const Store store = write_graph(folder / "s", 400, edges, false, split);
  const auto most_labelled = [&](NodeWeights weights) {
    PartitionOptions options;
    options.parts = 4;
    options.transductive = true;
    options.node_weights = weights;
    const ClusterLayout layout = ensure_partition(store, options).layout;
    uint32_t most = 0;
    for (uint32_t c = 0; c < layout.num_clusters(); ++c) {
      uint32_t labelled = 0;
      for (NodeId r = layout.cluster_offsets[c]; r < layout.cluster_offsets[c + 1]; ++r)
        labelled += layout.data.is_trained_on(r) ? 1 : 0;
      most = std::max(most, labelled);
    }
    return most;
  };
  EXPECT_GT(most_labelled(NodeWeights::kUniform), 60u);
  EXPECT_LT(most_labelled(NodeWeights::kLabelled), 40u);
}

TEST(Partition, AwkwardGraphsWork) {
  log::set_level(log::Level::kQuiet);
  const auto star = [](NodeId n) {
    EdgeList edges;
    for (NodeId v = 1; v < n; ++v) edges.add(0, v);
    return edges;
  };
  const auto none = [](NodeId) { return EdgeList(); };
  const auto pairs = [](NodeId n) {
    EdgeList edges;
    for (NodeId v = 0; v + 1 < n; v += 2) edges.add(v, v + 1);
    return edges;
  };
  const auto complete = [](NodeId n) {
    EdgeList edges;
    for (NodeId u = 0; u < n; ++u)
      for (NodeId v = 0; v < u; ++v) edges.add(u, v);
    return edges;
  };
  const std::vector<std::function<EdgeList(NodeId)>> shapes{star, none, pairs, complete};
  for (size_t shape = 0; shape < shapes.size(); ++shape)
    for (const NodeId n : {1u, 2u, 3u, 7u, 50u})
      for (const uint32_t parts : {1u, 2u, 3u, 6u, 25u, 48u, 49u, 50u, 1000u})
        for (const PartitionMethod method :
             {PartitionMethod::kMetis, PartitionMethod::kMetisRecursive, PartitionMethod::kMultilevel}) {
          SCOPED_TRACE(fmt::format("shape {} n {} parts {} method {}", shape, n, parts, static_cast<int>(method)));
          const TemporaryFolder folder;
          EdgeList edges = shapes[shape](n);
          const Store store = write_graph(folder / "s", n, edges);
          PartitionOptions options;
          options.parts = parts;
          options.method = method;
          const ClusterLayout layout = ensure_partition(store, options).layout;
          EXPECT_EQ(layout.data.num_nodes(), n);
          EXPECT_GE(layout.num_clusters(), 1u);
          EXPECT_LE(layout.num_clusters(), std::min(parts, n));
          if (method == PartitionMethod::kMultilevel) {
            EXPECT_EQ(layout.num_clusters(), std::min(parts, n));
          }
        }
}

TEST(Partition, TheSameSeedGivesTheSameClustersOnAnyNumberOfThreads) {
  log::set_level(log::Level::kQuiet);
  const auto hashes = [](int threads, uint64_t seed, PartitionMethod method = PartitionMethod::kMetis) {
    set_thread_count(threads);
    const TemporaryFolder folder;
    EdgeList edges;
    Random random(3, Purpose::kTest);
    for (int i = 0; i < 30000; ++i) edges.add(random.below(5000), random.below(5000));
    const Store store = write_graph(folder / "s", 5000, edges);
    PartitionOptions options;
    options.parts = 20;
    options.seed = seed;
    options.method = method;
    const ClusterLayout layout = ensure_partition(store, options).layout;
    aggregated_features(layout, {});
    const Store product(layout.path / "aggregated" / "mean");
    set_thread_count(0);
    return std::pair(layout.data.content_hash, product.meta().at("content_hash").get<std::string>());
  };
  EXPECT_EQ(hashes(1, 5), hashes(4, 5));
  EXPECT_NE(hashes(1, 5).first, hashes(1, 6).first);
  EXPECT_EQ(hashes(1, 5, PartitionMethod::kMultilevel), hashes(4, 5, PartitionMethod::kMultilevel));
}

TEST(Partition, StaleAndForeignOnesAreRefusedByName) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  EdgeList edges = chain_of_rings(4, 10), other_edges = chain_of_rings(5, 8), same_edges = chain_of_rings(4, 10);
  const Store store = write_graph(folder / "a", 40, edges);
  const Store other = write_graph(folder / "b", 40, other_edges);
  const Store resplit = write_graph(folder / "c", 40, same_edges, false, [] {
    std::vector<uint8_t> split(40, 0);
    split[7] = 2;
    return split;
  }());
  PartitionOptions options;
  options.parts = 4;
  const fs::path made = ensure_partition(store, options).layout.path;
  const auto refusal = [&](const Store& target, const std::string& name) {
    fs::create_directories(target.path() / "partitions");
    fs::copy(made, target.path() / "partitions" / name, fs::copy_options::recursive);
    PartitionOptions named = options;
    named.name = name;
    EXPECT_FALSE(find_partition(target, named).has_value());
    const std::string message = test::message_of<Error>([&] { ensure_partition(target, named); });
    EXPECT_NE(message.find("partitions/" + name), std::string::npos) << message;
    return message;
  };
  EXPECT_NE(refusal(other, "copied").find("another graph"), std::string::npos);
  EXPECT_NE(refusal(resplit, "old").find("stale"), std::string::npos);
  EXPECT_NO_THROW(ensure_partition(other, options));  // under its own name it is made

  options.name = made.filename();
  options.parts = 5;
  EXPECT_NE(test::message_of<Error>([&] { ensure_partition(store, options); }).find("other options"),
            std::string::npos);
  options.replace = true;
  EXPECT_EQ(ensure_partition(store, options).layout.num_clusters(), 5u);
}

TEST(Partition, SeveralLiveSideBySideWithinTheDiskBound) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  Dataset data = random_dataset(1);
  EdgeList edges = chain_of_rings(100, 30);
  data.graph = build_graph(3000, edges, {}, nullptr);
  data.features = FeatureMatrix::identity(3000);  // the least favourable: no features next to which ids weigh little
  data.labels = Labels::single(std::vector<int32_t>(3000, 0), 2);
  data.split = std::vector<uint8_t>(3000, 0);
  data.graph_ids = {};
  data.ids = {};
  write_store(folder / "s", data, StagedDirectory::Existing::kRefuse);
  const Store store(folder / "s");
  std::set<fs::path> paths;
  for (const uint32_t parts : {3u, 10u, 100u})
    for (const bool transductive : {false, true}) {
      PartitionOptions options;
      options.parts = parts;
      options.transductive = transductive;
      const ClusterLayout layout = ensure_partition(store, options).layout;
      paths.insert(layout.path);
      EXPECT_LE(layout.files->bytes_on_disk(), 1.3 * static_cast<double>(store.bytes_on_disk()));
    }
  EXPECT_EQ(paths.size(), 6u);
}

TEST(Partition, ClustersFromAFile) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  EdgeList edges = chain_of_rings(2, 5);
  const Store store = write_graph(folder / "s", 10, edges);
  const fs::path file = folder / "clusters";
  PartitionOptions options;
  options.from = file.string();
  const auto put = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  const auto order_from = [&] {
    const ClusterLayout layout = ensure_partition(store, options).layout;
    return std::vector<NodeId>(layout.order.begin(), layout.order.end());
  };
  const std::vector<NodeId> expected{1, 3, 0, 2, 4, 5, 6, 7, 8, 9};
  put("7\n3\n7\n3\n9\n9\n9\n9\r\n 9\n9");
  EXPECT_EQ(order_from(), expected);
  for (const std::string dtype : {"<i8", "<u4", "|u1"}) {
    std::string bytes = make_npy_header(dtype, std::vector<uint64_t>{10});
    const size_t width = static_cast<size_t>(dtype.back() - '0');
    for (const char value : {7, 3, 7, 3, 9, 9, 9, 9, 9, 9}) bytes += value + std::string(width - 1, '\0');
    put(bytes);
    EXPECT_EQ(order_from(), expected) << dtype;
  }
  const auto refusal = [&](const std::string& text) {
    put(text);
    return test::message_of<Error>([&] { ensure_partition(store, options); });
  };
  EXPECT_NE(refusal("1\n2\n").find("2 cluster numbers"), std::string::npos);
  EXPECT_NE(refusal("1\n2\nx\n").find("clusters:3"), std::string::npos);
  EXPECT_NE(refusal("1\n-2\n").find("clusters:2"), std::string::npos);
  EXPECT_NE(refusal("").find("0 cluster numbers"), std::string::npos);
  EXPECT_NE(refusal(make_npy_header("<f4", std::vector<uint64_t>{10}) + std::string(40, '\0')).find("integers"),
            std::string::npos);
  options.parts = 3;
  put("0\n0\n0\n0\n0\n1\n1\n1\n1\n1\n");
  EXPECT_NE(test::message_of<Error>([&] { ensure_partition(store, options); }).find("2 clusters"), std::string::npos);
}

TEST(Partition, TheMultilevelPartitionerKeepsItsLevelsAndRefusesVolume) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  EdgeList edges;
  for (NodeId v = 0; v < 8000; ++v) {
    edges.add(v, v / 20 * 20 + (v + 1) % 20);
    edges.add(v, (v + 20) % 8000);
  }
  const Store store = write_graph(folder / "s", 8000, edges);
  PartitionOptions options;
  options.parts = 40;
  options.method = PartitionMethod::kMultilevel;
  for (const bool reused : {false, true}) {
    const PartitionResult made = ensure_partition(store, options);
    EXPECT_EQ(made.reused, reused);
    const auto& record = made.layout.files->extra().at("partition");
    ASSERT_GE(record.at("levels").size(), 2u);
    EXPECT_EQ(record["levels"][0]["nodes"], 8000);
    EXPECT_EQ(record["levels"][0]["cut_entries"], entries_cut(made.layout));
    EXPECT_FALSE(record.at("options").contains("objective"));
  }
  options.objective = PartitionObjective::kVolume;
  EXPECT_NE(test::message_of<Error>([&] { ensure_partition(store, options); }).find("--objective volume"),
            std::string::npos);
}

TEST(Partition, NothingToTrainOnIsSaid) {
  const TemporaryFolder folder;
  EdgeList edges = chain_of_rings(2, 5);
  const Store store = write_graph(folder / "s", 10, edges, false, std::vector<uint8_t>(10, 2));
  EXPECT_NE(test::message_of<Error>([&] { ensure_partition(store, {}); }).find("--transductive"), std::string::npos);
}

TEST(Partition, ADamagedProductIsComputedAgain) {
  log::set_level(log::Level::kQuiet);
  const TemporaryFolder folder;
  const Store store = write_random(folder, 4);
  const auto whole = test::dense_features(aggregated_features(store, {}));
  const fs::path meta = store.path() / "cache" / "aggregated-mean" / "meta.json";
  ASSERT_TRUE(fs::exists(meta));
  std::ofstream(meta) << "{}";
  EXPECT_EQ(test::dense_features(aggregated_features(store, {})), whole);
}

}  // namespace
}  // namespace cgcn
