// Every count that the README of the real graphs gives, from their publishers' files. Skipped where they are absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "io_support.h"

namespace cgcn {
namespace {

struct RealGraph {
  std::string folder;
  uint64_t nodes, edges, columns;
  FeatureMatrix::Kind kind;
  uint32_t classes;
  std::array<uint64_t, 3> split;
  BuildCounts counts;
  uint64_t isolated;
};
void PrintTo(const RealGraph& graph, std::ostream* out) { *out << graph.folder; }

class RealData : public ::testing::TestWithParam<RealGraph> {};

uint64_t count_isolated(const CsrGraph& graph) {
  uint64_t count = 0;
  for (NodeId v = 0; v < graph.num_nodes(); ++v) count += graph.degree(v) == 0 ? 1 : 0;
  return count;
}

TEST_P(RealData, HasTheCountsOfItsReadme) {
  CGCN_DATA_OR_SKIP(folder);
  const RealGraph& expected = GetParam();
  const test::TemporaryFolder temporary;
  ImportReport report;
  const Dataset data = test::import(folder / expected.folder, temporary / "store", {}, &report);
  EXPECT_EQ(data.num_nodes(), expected.nodes);
  EXPECT_EQ(data.graph.num_edges(), expected.edges);
  EXPECT_FALSE(data.graph.weighted());
  EXPECT_EQ(data.features.kind(), expected.kind);
  EXPECT_EQ(data.features.columns(), expected.columns);
  EXPECT_EQ(data.labels.num_classes(), expected.classes);
  EXPECT_EQ(data.split_sizes(), expected.split);
  EXPECT_EQ(report.counts.entries, expected.counts.entries);
  EXPECT_EQ(report.counts.duplicates, expected.counts.duplicates);
  EXPECT_EQ(report.counts.self_loops, expected.counts.self_loops);
  EXPECT_EQ(report.counts.one_directional, expected.counts.one_directional);
  if (expected.isolated > 0) {
    EXPECT_EQ(count_isolated(data.graph), expected.isolated);
  }
}

constexpr auto kSparse = FeatureMatrix::Kind::kSparse;
constexpr auto kHalf = FeatureMatrix::Kind::kDense16;

INSTANTIATE_TEST_SUITE_P(
    Readme, RealData,
    ::testing::Values(
        RealGraph{"cora", 2708, 5278, 1433, kSparse, 7, {140, 500, 1000}, {10858, 302, 0, 0}, 0},
        RealGraph{"citeseer", 3327, 4552, 3703, kSparse, 6, {120, 500, 1000}, {9464, 112, 248, 0}, 48},
        RealGraph{"amazon_photo", 7650, 119081, 745, kSparse, 8, {4590, 1530, 1530}, {143663, 0, 1, 94500}, 115},
        RealGraph{"coauthor_cs", 18333, 81894, 6805, kSparse, 15, {10999, 3667, 3667}, {163788, 0, 0, 0}, 0},
        RealGraph{"wordnet", 117791, 184083, 100, kHalf, 45, {70674, 23558, 23559}, {184083, 0, 0, 184083}, 1004},
        RealGraph{"debtags", 63436, 323415, 100, kHalf, 100, {18100, 6033, 6034}, {323415, 0, 0, 323415}, 0},
        RealGraph{"twitch", 36890, 492575, 3170, kSparse, 2, {23173, 4648, 9069}, {492575, 0, 0, 492575}, 0}),
    [](const auto& info) { return info.param.folder; });

TEST(RealDataDetails, NodesInCiteseersGapsHaveNothing) {
  CGCN_DATA_OR_SKIP(folder);
  const test::TemporaryFolder temporary;
  const Dataset data = test::import(folder / "citeseer", temporary / "store");
  uint64_t gaps = 0;
  for (NodeId v = 2312; v < data.num_nodes(); ++v) {  // those behind allx
    if (data.role(v) != Role::kNone) continue;
    ++gaps;
    EXPECT_TRUE(data.features.row_columns(v).empty());
    EXPECT_EQ(data.labels.class_of(v), -1);
  }
  EXPECT_EQ(gaps, 15u);
}

TEST(RealDataDetails, PlanetoidFeaturesAreBinary) {
  CGCN_DATA_OR_SKIP(folder);
  const test::TemporaryFolder temporary;
  for (const char* name : {"cora", "citeseer"}) {
    const Dataset data = test::import(folder / name, temporary / name);
    for (const float value : data.features.sparse_values()) ASSERT_EQ(value, 1.0f);
  }
}

TEST(RealDataDetails, DebtagsHasUnlabelledNodesAndAHub) {
  CGCN_DATA_OR_SKIP(folder);
  const test::TemporaryFolder temporary;
  const Dataset data = test::import(folder / "debtags", temporary / "store");
  uint64_t unlabelled = 0, largest = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    const auto bits = data.labels.bit_row(v);
    const bool none = std::all_of(bits.begin(), bits.end(), [](uint8_t byte) { return byte == 0; });
    if (data.role(v) == Role::kNone) {
      ++unlabelled;
      EXPECT_TRUE(none);
    }
    largest = std::max(largest, data.graph.degree(v));
  }
  EXPECT_TRUE(data.labels.multi_label());
  EXPECT_EQ(unlabelled, 33269u);
  EXPECT_EQ(largest, 21815u);
}

TEST(RealDataDetails, TwitchIsSevenGraphsThatTheSplitDoesNotCross) {
  CGCN_DATA_OR_SKIP(folder);
  const test::TemporaryFolder temporary;
  const Dataset data = test::import(folder / "twitch", temporary / "store");
  ASSERT_EQ(data.num_graphs(), 7u);
  std::map<uint32_t, std::set<Role>> roles;
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    roles[data.graph_ids[v]].insert(data.role(v));
    for (const NodeId u : data.graph.neighbours(v)) ASSERT_EQ(data.graph_ids[u], data.graph_ids[v]);
  }
  std::map<Role, int> graphs;
  for (const auto& [graph, those] : roles) {
    EXPECT_EQ(those.size(), 1u);
    ++graphs[*those.begin()];
  }
  EXPECT_EQ(graphs, (std::map<Role, int>{{Role::kTrain, 3}, {Role::kValidation, 1}, {Role::kTest, 3}}));
}

}  // namespace
}  // namespace cgcn
