#include "generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/threads.h"
#include "generate/topology.h"
#include "graph/statistics.h"
#include "support.h"

namespace cgcn {
namespace {

Dataset generate(const test::TemporaryFolder& folder, const GenerateOptions& options) {
  generate_store(folder / "store", options, StagedDirectory::Existing::kReplace);
  return open_dataset(folder / "store");
}

// Every pair once in each direction, no loops, nothing between separate graphs.
void expect_simple(const Dataset& data) {
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    for (const NodeId u : data.graph.neighbours(v)) {
      ASSERT_NE(u, v);
      const auto back = data.graph.neighbours(u);
      ASSERT_TRUE(std::binary_search(back.begin(), back.end(), v));
      if (!data.graph_ids.empty()) {
        ASSERT_EQ(data.graph_ids[u], data.graph_ids[v]);
      }
    }
}

// The paper's tables: nodes, edges, features, labels, split.
TEST(Shape, HasThePapersCounts) {
  struct Row {
    ShapeName name;
    uint64_t nodes, edges;
    uint32_t features, classes;
    bool multi_label;
    std::array<uint64_t, 3> split;
    size_t graphs;
  };
  for (const Row& row : {Row{ShapeName::kPpi, 56'944, 818'716, 50, 121, true, {44'906, 6'514, 5'524}, 24},
                         Row{ShapeName::kReddit, 232'965, 11'606'919, 602, 41, false, {153'932, 23'699, 55'334}, 1},
                         Row{ShapeName::kAmazon, 334'863, 925'872, 0, 58, true, {91'973, 0, 242'890}, 1},
                         Row{ShapeName::kAmazon2m, 2'449'029, 61'859'140, 100, 47, false, {1'709'997, 0, 739'032}, 1},
                         Row{ShapeName::kPapers100m,
                             111'059'956,
                             1'615'685'872,
                             128,
                             172,
                             false,
                             {86'676'239, 8'994'109, 15'389'608},
                             1}}) {
    const Shape shape = resolve_shape({.like = row.name});
    EXPECT_EQ(shape.nodes, row.nodes);
    EXPECT_EQ(shape.edges, row.edges);
    EXPECT_EQ(shape.features, row.features);
    EXPECT_EQ(shape.classes, row.classes);
    EXPECT_EQ(shape.multi_label, row.multi_label);
    EXPECT_EQ(shape.split, row.split);
    EXPECT_EQ(shape.graph_sizes.size(), row.graphs);
    EXPECT_EQ(std::accumulate(shape.graph_sizes.begin(), shape.graph_sizes.end(), uint64_t{0}), row.nodes);
    if (!row.multi_label) {
      EXPECT_EQ(std::accumulate(shape.class_sizes.begin(), shape.class_sizes.end(), uint64_t{0}), row.nodes);
      EXPECT_TRUE(std::is_sorted(shape.class_sizes.rbegin(), shape.class_sizes.rend()));
      EXPECT_GT(shape.class_sizes.back(), 0u);
    }
  }
  const Shape amazon2m = resolve_shape({.like = ShapeName::kAmazon2m});
  EXPECT_EQ(amazon2m.class_sizes[0], 668'950u);
  EXPECT_EQ(amazon2m.class_sizes[1], 172'199u);
  EXPECT_EQ(amazon2m.class_sizes[2], 158'771u);
  EXPECT_EQ(amazon2m.class_names[0], "Books");
}

TEST(Shape, PpiIsSplitByWholeGraphs) {
  const Shape shape = resolve_shape({.like = ShapeName::kPpi});
  std::array<uint64_t, 3> graphs{}, nodes{};
  for (size_t g = 0; g < shape.graph_sizes.size(); ++g) {
    ++graphs[shape.graph_roles[g]];
    nodes[shape.graph_roles[g]] += shape.graph_sizes[g];
  }
  EXPECT_EQ(graphs, (std::array<uint64_t, 3>{20, 2, 2}));
  EXPECT_EQ(nodes, shape.split);
}

TEST(Shape, ScaleKeepsProportions) {
  const Shape whole = resolve_shape({.like = ShapeName::kAmazon2m});
  const Shape tenth = resolve_shape({.like = ShapeName::kAmazon2m, .scale = 0.1});
  EXPECT_NEAR(tenth.nodes, 0.1 * whole.nodes, 1);
  EXPECT_NEAR(static_cast<double>(tenth.edges) / tenth.nodes, static_cast<double>(whole.edges) / whole.nodes, 0.01);
  EXPECT_NEAR(static_cast<double>(tenth.split[0]) / tenth.nodes, static_cast<double>(whole.split[0]) / whole.nodes,
              1e-4);
  EXPECT_NEAR(static_cast<double>(tenth.class_sizes[0]), 0.1 * 668'950, 1);
  EXPECT_EQ(resolve_shape({.like = ShapeName::kPpi, .scale = 0.1}).graph_sizes.size(), 24u);
}

TEST(Shape, SaysWhatCannotBe) {
  const auto message = [](const GenerateOptions& options) {
    return test::message_of<Error>([&] { resolve_shape(options); });
  };
  EXPECT_NE(message({.nodes = 10, .edges = 46, .classes = 2}).find("46 edges are more than the 45 pairs"),
            std::string::npos);
  EXPECT_NE(message({.nodes = 1}).find("--nodes"), std::string::npos);
  EXPECT_NE(message({.nodes = 5, .edges = 4, .classes = 6}).find("6 classes for 5 nodes"), std::string::npos);
  EXPECT_NE(message({.nodes = 10, .edges = 4, .classes = 2, .graphs = 6}).find("--graphs"), std::string::npos);
  EXPECT_NE(message({.nodes = 100, .edges = 4, .classes = 2, .graphs = 2}).find("too few for this split"),
            std::string::npos);
  EXPECT_NE(message({.features = 3, .identity = true}).find("--features"), std::string::npos);
  for (const char* split :
       {"60", "60/20", "60/20/20/1", "a/b/c", "60/-20/20", "nan/1/1", "60/20/20x", "0/50/50", "inf/1/1"})
    EXPECT_NE(message({.split = split}).find("--split"), std::string::npos) << split;
}

TEST(Generate, PpiIsWholeAndSimple) {
  const test::TemporaryFolder folder;
  const Dataset data = generate(folder, {.like = ShapeName::kPpi});
  EXPECT_EQ(data.num_nodes(), 56'944u);
  EXPECT_EQ(data.graph.num_edges(), 818'716u);
  EXPECT_EQ(data.features.columns(), 50u);
  EXPECT_EQ(data.labels.num_classes(), 121u);
  EXPECT_TRUE(data.labels.multi_label());
  EXPECT_EQ(data.split_sizes(), (std::array<uint64_t, 3>{44'906, 6'514, 5'524}));
  EXPECT_EQ(data.num_graphs(), 24u);
  expect_simple(data);
  // A heavy tail: the largest degree is many times the median, and most nodes lie below the mean.
  const DegreeStatistics degrees = degree_statistics(data.graph);
  EXPECT_GT(degrees.largest, 10 * degrees.median);
  EXPECT_LT(static_cast<double>(degrees.median), degrees.mean);
}

TEST(Generate, ClassSizesAndLinksFollowTheShape) {
  const test::TemporaryFolder folder;
  const GenerateOptions options{.like = ShapeName::kAmazon2m, .scale = 0.004};
  const Shape shape = resolve_shape(options);
  const Dataset data = generate(folder, options);
  EXPECT_EQ(data.graph.num_edges(), shape.edges);
  EXPECT_EQ(label_statistics(data.labels, data.num_nodes()).class_sizes, shape.class_sizes);
  EXPECT_EQ(data.split_sizes(), shape.split);
  EXPECT_EQ(data.class_name(0), "Books");
  EXPECT_GT(edge_homophily(data.graph, data.labels), 0.5);
  expect_simple(data);
}

TEST(Generate, Papers100mHasHalfPrecisionFeatures) {
  const test::TemporaryFolder folder;
  const GenerateOptions options{.like = ShapeName::kPapers100m, .scale = 1e-4};
  const Dataset data = generate(folder, options);
  EXPECT_EQ(data.num_nodes(), 11'106u);
  EXPECT_EQ(data.graph.num_edges(), resolve_shape(options).edges);
  EXPECT_EQ(data.features.kind(), FeatureMatrix::Kind::kDense16);
  EXPECT_EQ(data.features.columns(), 128u);
  std::vector<float> row(128);
  data.features.copy_row(7, row.data());
  EXPECT_NE(std::count(row.begin(), row.end(), 0.0f), 128);
  expect_simple(data);
}

TEST(Generate, AmazonHasTheIdentityAndLabelsOfNeighbours) {
  const test::TemporaryFolder folder;
  const Dataset data = generate(folder, {.like = ShapeName::kAmazon, .scale = 0.03});
  EXPECT_EQ(data.features.kind(), FeatureMatrix::Kind::kIdentity);
  EXPECT_EQ(data.labels.num_classes(), 58u);
  EXPECT_EQ(data.split_sizes()[1], 0u);
  EXPECT_GT(edge_homophily(data.graph, data.labels), 0.4);
}

TEST(Generate, FreeSizesAreExact) {
  const test::TemporaryFolder folder;
  for (const GenerateOptions& options :
       {GenerateOptions{.nodes = 2, .edges = 1, .features = 1, .classes = 1, .split = "100/0/0"},
        GenerateOptions{.nodes = 50, .edges = 1225, .features = 3, .classes = 4},  // complete
        GenerateOptions{.nodes = 300, .edges = 44'000, .features = 3, .classes = 2, .multi_label = true},
        GenerateOptions{.nodes = 1000, .edges = 10, .features = 7, .classes = 5},
        GenerateOptions{.nodes = 900, .edges = 5000, .features = 7, .classes = 5, .graphs = 9, .split = "5/2/2"}}) {
    const Dataset data = generate(folder, options);
    EXPECT_EQ(data.num_nodes(), options.nodes);
    EXPECT_EQ(data.graph.num_edges(), options.edges);
    EXPECT_EQ(data.features.columns(), options.features);
    EXPECT_EQ(data.labels.num_classes(), options.classes);
    EXPECT_EQ(data.labels.multi_label(), options.multi_label);
    EXPECT_EQ(data.num_graphs(), std::max(1u, options.graphs));
    expect_simple(data);
  }
}

// The checksums keep generated graphs the same from release to release.
TEST(Generate, SameForAnyThreadsAndAsRecorded) {
  const test::TemporaryFolder folder;
  const std::vector<std::pair<GenerateOptions, std::vector<std::string>>> recorded = {
      {{}, {"d62fa209f992130c", "c87cdd6de0341f88", "b2a701e6502961b7", "1b8c99c7f189fddc"}},
      {{.like = ShapeName::kPpi, .scale = 0.1, .seed = 7},
       {"0205e11d54682802", "6547a0d22ef49112", "328ad1caaf0ea74d", "181938e29776aaad"}}};
  for (const auto& [options, checksums] : recorded)
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      generate_store(folder / "store", options, StagedDirectory::Existing::kReplace);
      const nlohmann::json arrays = Store(folder / "store").meta().at("arrays");
      std::vector<std::string> found;
      for (const char* name : {"adjacency_targets", "features", "labels", "split"})
        found.push_back(arrays.at(name).at("checksum"));
      EXPECT_EQ(found, checksums) << threads << " threads";
    }
  set_thread_count(0);
}

TEST(Generate, SeedsDiffer) {
  const test::TemporaryFolder folder;
  const GenerateOptions one{.nodes = 500, .seed = 1}, two{.nodes = 500, .seed = 2};
  const Dataset first = generate(folder, one), second = generate(folder, two);
  EXPECT_NE(first.graph_hash, second.graph_hash);
  EXPECT_FALSE(std::equal(first.split.begin(), first.split.end(), second.split.begin(), second.split.end()));
}

TEST(Generate, RefusesToReplaceUnlessTold) {
  const test::TemporaryFolder folder;
  const GenerateOptions options{.nodes = 100};
  generate_store(folder / "store", options, StagedDirectory::Existing::kRefuse);
  EXPECT_THROW(generate_store(folder / "store", options, StagedDirectory::Existing::kRefuse), Error);
  EXPECT_NO_THROW(generate_store(folder / "store", options, StagedDirectory::Existing::kReplace));
}

// Edges in buckets on disk are the edges in memory, also those of a nearly complete graph.
TEST(Generate, EdgesOnDiskAreTheSame) {
  const test::TemporaryFolder folder;
  for (GenerateOptions options :
       {GenerateOptions{.nodes = 9000, .edges = 40000}, GenerateOptions{.nodes = 60, .edges = 1700},
        GenerateOptions{.like = ShapeName::kPpi, .scale = 0.02}}) {
    const Shape shape = resolve_shape(options);
    const Communities communities(shape, 7);
    const auto edges = [&](const EdgeRoom& room) {
      EdgeKeys keys = generate_links(shape, communities, 7, room);
      EXPECT_EQ(keys.on_disk(), room.memory == 0);
      EXPECT_EQ(keys.size(), shape.edges);
      std::vector<EdgeKey> all = keys.take_all();
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
      return all;
    };
    EXPECT_EQ(edges({}), edges({0, folder.path()}));
  }
}

TEST(Generate, KeysOfManyChunksComeBackSorted) {
  const test::TemporaryFolder folder;
  EdgeKeys keys(1000, 500'000, {0, folder.path()});
  Random random(3, Purpose::kTest);
  std::vector<EdgeKey> all;
  for (size_t i = 0; i < 500'000; ++i) all.push_back(key_of(random.below(1000), random.below(1000)));
  keys.add(all);
  keys.settle();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  ASSERT_EQ(keys.size(), all.size());
  keys.filter([](uint64_t index) { return index % 3 != 0; });
  std::vector<EdgeKey> kept, found;
  for (size_t i = 0; i < all.size(); ++i)
    if (i % 3 != 0) kept.push_back(all[i]);
  keys.visit([&](const EdgeRun& run) {
    for (size_t i = 0; i < run.size; ++i) found.push_back(key_of(run.from[i], run.to[i]));
  });
  EXPECT_EQ(found, kept);
}

TEST(Generate, TooLittleMemoryIsRefusedWithTheLeastThatWorks) {
  const test::TemporaryFolder folder;
  try {
    generate_store(folder.path() / "store", {}, StagedDirectory::Existing::kRefuse, uint64_t{1} << 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "--memory");
  }
  EXPECT_FALSE(fs::exists(folder.path() / "store"));
}

}  // namespace
}  // namespace cgcn
