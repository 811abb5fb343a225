#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "io_support.h"

namespace cgcn {
namespace {

using ::testing::HasSubstr;

// Five nodes, a path 0-1-2-3 and an isolated node.
void write_small_graph(const fs::path& folder) {
  fs::create_directories(folder);
  test::write_npy<int32_t>(folder / "edge_index.npy", {0, 1, 2, 1, 2, 3}, {2, 3});
  test::write_npy<float>(folder / "features.npy", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2});
  test::write_npy<int32_t>(folder / "labels.npy", {0, 1, 2, 0, -1}, {5});
  test::write_npy<uint8_t>(folder / "split.npy", {0, 0, 1, 2, 255}, {5});
}

TEST(PlainReader, ReadsEveryPart) {
  const test::TemporaryFolder folder;
  write_small_graph(folder / "g");
  const Dataset data = test::import(folder / "g", folder / "s");
  EXPECT_EQ(data.num_nodes(), 5u);
  EXPECT_EQ(data.graph.num_edges(), 3u);
  EXPECT_EQ(data.features.dense_row(4)[1], 9);
  EXPECT_EQ(data.labels.class_of(4), -1);
  EXPECT_EQ(data.split_sizes(), (std::array<uint64_t, 3>{2, 1, 1}));
}

TEST(PlainReader, CountsWhatItMends) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  test::write_npy<int64_t>(folder / "g" / "edge_index.npy", {0, 1, 1, 0, 2, 2, 3, 1, 3, 1}, {5, 2});
  ImportReport report;
  const Dataset data = test::import(folder / "g", folder / "s", {}, &report);
  EXPECT_EQ(data.features.kind(), FeatureMatrix::Kind::kIdentity);
  EXPECT_EQ(report.counts.duplicates, 1u);
  EXPECT_EQ(report.counts.self_loops, 1u);
  EXPECT_EQ(report.counts.one_directional, 1u);
  EXPECT_THAT(report.lines, ::testing::Contains("1 duplicate entry merged"));
  EXPECT_EQ(data.graph.num_edges(), 2u);
}

TEST(PlainReader, NamesTheBadId) {
  const test::TemporaryFolder folder;
  write_small_graph(folder / "g");
  test::write_npy<int32_t>(folder / "g" / "edge_index.npy", {0, 1, 5, 1}, {2, 2});
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("edge 0 names node 5, but there are 5 nodes"));
}

// If nothing lists the nodes, one damaged id would otherwise ask for gigabytes.
TEST(PlainReader, AnIdFarBeyondTheEdgesIsRefused) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  test::write_npy<int32_t>(folder / "g" / "edge_index.npy", {0, 1, 1, 1'701'062'528}, {2, 2});
  EXPECT_THAT(test::import_error(folder / "g"),
              HasSubstr("edge_index.npy: speaks of 1,701,062,529 nodes, but there are 2 edges"));
}

}  // namespace
}  // namespace cgcn
