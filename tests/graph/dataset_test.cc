#include "graph/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "random_dataset.h"
#include "support.h"

namespace cgcn {
namespace {

std::array<size_t, 4> count_roles(const SharedArray<uint8_t>& split) {
  std::array<size_t, 4> counts{};
  for (const uint8_t role : split) ++counts[std::min<uint8_t>(role, 3)];
  return counts;
}

TEST(RandomSplit, GivesTheSharesOfTheLabelledNodes) {
  std::vector<int32_t> classes(1000, 1);
  for (size_t v = 0; v < classes.size(); v += 10) classes[v] = -1;  // 100 without a label
  const Labels labels = Labels::single(classes, 2);
  const auto split = random_split(labels, 1000, {60, 20, 20}, 5);
  EXPECT_EQ(count_roles(split), (std::array<size_t, 4>{540, 180, 180, 100}));
  for (NodeId v = 0; v < 1000; ++v) EXPECT_EQ(split[v] == 255, classes[v] < 0) << v;
  EXPECT_EQ(count_roles(random_split(labels, 1000, {1, 0, 0}, 5)), (std::array<size_t, 4>{900, 0, 0, 100}));
  EXPECT_EQ(count_roles(random_split(labels, 1000, {0.5, 0.25, 0.25}, 5)), (std::array<size_t, 4>{450, 225, 225, 100}));
}

TEST(RandomSplit, DependsOnTheSeedAlone) {
  const auto bytes = [](uint64_t seed) {
    const auto split = random_split({}, 500, {60, 20, 20}, seed);
    return std::vector<uint8_t>(split.begin(), split.end());
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(RandomSplit, SmallGraphsLoseNoNode) {
  for (NodeId n = 0; n < 30; ++n) {
    const auto counts = count_roles(random_split({}, n, {60, 20, 20}, 1));
    EXPECT_EQ(counts[0] + counts[1] + counts[2], n);
    EXPECT_NEAR(static_cast<double>(counts[0]), 0.6 * n, 0.51);
  }
}

TEST(Labels, BitsAreLeastSignificantFirst) {
  const Labels labels = Labels::multi(std::vector<uint8_t>{0b0000'0101, 0b10, 0, 0b1}, 10);
  EXPECT_TRUE(labels.multi_label());
  EXPECT_EQ(Labels::row_bytes(10), 2u);
  const auto row = [&](NodeId v) {
    std::vector<uint32_t> set;
    for (uint32_t label = 0; label < 10; ++label)
      if (labels.has(v, label)) set.push_back(label);
    return set;
  };
  EXPECT_EQ(row(0), (std::vector<uint32_t>{0, 2, 9}));
  EXPECT_EQ(row(1), std::vector<uint32_t>{8});
  EXPECT_FALSE(Labels().present());
}

TEST(NodeIds, AreWhatTheUserCalledThem) {
  EXPECT_EQ(NodeIds().text(7), "7");
  EXPECT_EQ(NodeIds::integers(std::vector<int64_t>{-5, 900}).text(0), "-5");
  const NodeIds names = NodeIds::strings(std::vector<uint64_t>{0, 3, 3, 5}, std::vector<char>{'a', 'n', 'n', 'b', 'o'});
  EXPECT_EQ(names.text(0), "ann");
  EXPECT_EQ(names.text(1), "");
  EXPECT_EQ(names.text(2), "bo");
}

TEST(Dataset, CountsTheEdgesThatTrainingSees) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Dataset data = test::random_dataset(seed);
    Random random(seed, Purpose::kTest);
    std::vector<uint8_t> split(data.num_nodes());
    for (uint8_t& role : split) role = static_cast<uint8_t>(random.below(3));
    data.split = split;
    uint64_t expected = 0;
    for (NodeId u = 0; u < data.num_nodes(); ++u)
      for (const NodeId v : data.graph.neighbours(u))
        expected += split[u] == 0 && split[v] == 0 && (data.graph.directed() || u <= v) ? 1 : 0;
    EXPECT_EQ(data.num_training_edges(), expected) << seed;
    data.split = std::vector<uint8_t>(data.num_nodes(), 0);
    EXPECT_EQ(data.num_training_edges(), data.graph.num_edges()) << seed;
  }
}

TEST(Dataset, CountsSplitsAndGraphs) {
  Dataset dataset;
  EXPECT_EQ(dataset.num_graphs(), 1u);
  EXPECT_EQ(dataset.role(3), Role::kNone);
  dataset.split = std::vector<uint8_t>{0, 2, 2, 255, 1};
  dataset.graph_ids = std::vector<uint32_t>{0, 0, 2, 1, 1};
  dataset.class_names = {"cat"};
  EXPECT_EQ(dataset.split_sizes(), (std::array<uint64_t, 3>{1, 1, 2}));
  EXPECT_EQ(dataset.num_graphs(), 3u);
  EXPECT_EQ(dataset.role(4), Role::kValidation);
  EXPECT_EQ(dataset.class_name(0), "cat");
  EXPECT_EQ(dataset.class_name(1), "1");
}

}  // namespace
}  // namespace cgcn
