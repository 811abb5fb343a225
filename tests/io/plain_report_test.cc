// What was read of a folder of arrays is said, file by file, and so is what was not read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io_support.h"

namespace cgcn {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// A path of four nodes.
struct ArrayFolder {
  test::TemporaryFolder folder;
  ImportOptions options;
  ImportReport report;
  ArrayFolder() {
    fs::create_directories(path(""));
    test::write_npy<int32_t>(path("edge_index.npy"), {0, 1, 2, 1, 2, 3}, {2, 3});
    write_features("features.npy");
    test::write_npy<int32_t>(path("labels.npy"), {0, 1, 2, 0}, {4});
  }
  fs::path path(const std::string& file) const { return folder / "g" / file; }
  void write_features(const char* file) const { test::write_npy<float>(path(file), {0, 1, 2, 3, 4, 5, 6, 7}, {4, 2}); }
  void write_mask(const char* file, std::vector<uint8_t> mask) const {
    test::write_npy<uint8_t>(path(file), mask, {4});
  }
  Dataset import(const std::string& source = "") {
    report = {};
    return test::import(source.empty() ? folder / "g" : path(source), folder / "s", options, &report);
  }
};

TEST(PlainReport, EveryFileHasALine) {
  ArrayFolder arrays;
  test::write_npy<float>(arrays.path("edge_weight.npy"), {1, 2, 3}, {3});
  arrays.write_mask("train_mask.npy", {1, 1, 0, 0});
  arrays.write_mask("test_mask.npy", {0, 0, 0, 1});
  arrays.import();
  EXPECT_THAT(arrays.report.lines,
              IsSupersetOf({"edge_index.npy: two rows of node ids", "edge_weight.npy: weights, entry i is of edge i",
                            "features.npy: an array, row i is node i", "labels.npy: an array, row i is node i",
                            "train_mask.npy: a mask, row i is node i", "test_mask.npy: a mask, row i is node i"}));
  EXPECT_THAT(arrays.report.lines, Not(Contains(HasSubstr("not read"))));
  test::write_npy<float>(arrays.path("edge_weight.npy"), {1, 1, 1}, {3});
  test::write_npy<int32_t>(arrays.path("edge_index.npy"), {0, 1, 1, 2, 2, 3}, {3, 2});
  arrays.import();
  EXPECT_THAT(arrays.report.lines,
              IsSupersetOf({"edge_index.npy: two columns of node ids", "edge_weight.npy: weights, all 1: not kept"}));
}

TEST(PlainReport, FilesFoundNextToTheEdgesCanBeDeclined) {
  ArrayFolder arrays;
  arrays.write_mask("train_mask.npy", {1, 1, 0, 0});
  arrays.import("edge_index.npy");
  EXPECT_THAT(
      arrays.report.lines,
      IsSupersetOf({"features.npy (found next to edge_index.npy; --features none ignores it): an array, row i is node "
                    "i",
                    "train_mask.npy (found next to edge_index.npy; --split-file none ignores it): a mask, row i is "
                    "node i"}));
}

TEST(PlainReport, FilesThatAreNotReadAreNamed) {
  ArrayFolder arrays;
  arrays.write_features("x.npy");
  test::write_npy<int32_t>(arrays.path("y.npy"), {0, 1, 2, 0}, {4});
  test::write_npy<float>(arrays.path("edge_attr.npy"), {1, 2, 3}, {3});
  arrays.write_mask("split.npy", {0, 0, 1, 2});
  arrays.write_mask("train_mask.npy", {1, 1, 1, 1});
  EXPECT_EQ(arrays.import().role(3), Role::kTest);
  EXPECT_THAT(
      arrays.report.lines,
      IsSupersetOf({"x.npy: not read, since there is features.npy", "y.npy: not read, since there is labels.npy",
                    "train_mask.npy: not read, since there is split.npy",
                    "edge_attr.npy: not read (edge_weight.npy would be read as weights)"}));
  arrays.options.features = arrays.path("x.npy");  // whoever names a file knows what is left out
  arrays.import();
  EXPECT_THAT(arrays.report.lines, Not(Contains(HasSubstr("features.npy"))));
  EXPECT_THAT(arrays.report.lines, Contains("x.npy: an array, row i is node i"));
}

TEST(PlainReport, OneListOfARoleIsRead) {
  ArrayFolder arrays;
  test::write_npy<int32_t>(arrays.path("train_idx.npy"), {2, 3}, {2});
  arrays.write_mask("train_mask.npy", {1, 1, 0, 0});
  EXPECT_EQ(arrays.import().role(3), Role::kTrain);
  EXPECT_THAT(arrays.report.lines, Contains("train_mask.npy: not read, since there is train_idx.npy"));
  fs::remove(arrays.path("train_idx.npy"));
  fs::rename(arrays.path("train_mask.npy"), arrays.path("val_mask.npy"));
  EXPECT_TRUE(arrays.import().split.empty());
  EXPECT_THAT(arrays.report.lines, Contains("val_mask.npy: not read, since there is no train_mask.npy"));
}

TEST(PlainReport, GraphsWithNodesAreCounted) {
  ArrayFolder arrays;
  const auto graphs = [&](std::vector<int32_t> ids) {
    test::write_npy<int32_t>(arrays.path("graph_id.npy"), ids, {4});
    const Dataset data = arrays.import();
    return std::pair(data.num_graphs(), std::vector<int>(data.graph_ids.begin(), data.graph_ids.end()));
  };
  EXPECT_EQ(graphs({0, 0, 1, 1}), std::pair(2u, std::vector{0, 0, 1, 1}));
  EXPECT_THAT(arrays.report.lines, Contains("graph_id.npy: the graph of each node, 2 graphs"));
  EXPECT_EQ(graphs({1, 1, 2, 2}), std::pair(2u, std::vector{0, 0, 1, 1}));
  EXPECT_THAT(arrays.report.lines, Contains("graph_id.npy: the graph of each node, 2 graphs (renumbered from 0)"));
  EXPECT_EQ(graphs({3, 1, 3, 1}), std::pair(2u, std::vector{1, 0, 1, 0}));
  EXPECT_EQ(graphs({1, 2, 3, 4}).first, 4u);
  EXPECT_EQ(graphs({1, 1, 1, 1}).first, 1u);
  EXPECT_THAT(arrays.report.lines, Contains("graph_id.npy: the graph of each node, 1 graph (renumbered from 0)"));
}

}  // namespace
}  // namespace cgcn
