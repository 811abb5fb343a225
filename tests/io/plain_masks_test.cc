// Parts of the split as arrays: masks and lists of nodes are told apart by one rule, and what a file was taken for is
// said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io_support.h"

namespace cgcn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A path of six nodes, as arrays or as an edge list.
struct MaskedGraph {
  test::TemporaryFolder folder;
  ImportReport report;
  explicit MaskedGraph(bool arrays = true) {
    fs::create_directories(path(""));
    if (arrays)
      test::write_npy<int64_t>(path("edge_index.npy"), {0, 1, 2, 3, 4, 1, 2, 3, 4, 5}, {2, 5});
    else
      test::write_bytes(path("edges.csv"), "0,1\n1,2\n2,3\n3,4\n4,5\n");
    test::write_npy<int32_t>(path("labels.npy"), {0, 1, 0, 1, 0, 1}, {6});
  }
  fs::path path(const std::string& file) const { return folder / "g" / file; }
  std::vector<int> roles() {
    report = {};
    const Dataset data = test::import(folder / "g", folder / "s", {}, &report);
    return {data.split.begin(), data.split.end()};
  }
};

TEST(PlainMasks, NumbersInAFileCalledAMaskAreAMask) {
  const auto reads_mask = [](MaskedGraph& graph, const std::string& bytes) {
    test::write_bytes(graph.path("train_mask.npy"), bytes);
    EXPECT_THAT(graph.roles(), ElementsAre(0, 255, 0, 0, 255, 255));
    EXPECT_THAT(graph.report.lines, Contains("train_mask.npy: a mask, row i is node i"));
  };
  for (const bool arrays : {true, false}) {
    MaskedGraph graph(arrays);
    reads_mask(graph, test::npy_bytes<uint8_t>({1, 0, 1, 1, 0, 0}, {6}));
    reads_mask(graph, test::npy_bytes<uint8_t>({1, 0, 1, 1, 0, 0}, {6}, "|b1"));
    reads_mask(graph, test::npy_bytes<int64_t>({1, 0, 1, 1, 0, 0}, {6}));
    reads_mask(graph, test::npy_bytes<float>({1, 0, 1, 1, 0, 0}, {6}));
    reads_mask(graph, test::npy_bytes<double>({1, 0, 1, 1, 0, 0}, {6}, "<f8"));
  }
}

// A list has each node once: more than two entries of 0 and 1 are no list.
TEST(PlainMasks, ZerosAndOnesForEveryNodeAreAMaskUnderAnyName) {
  for (const bool arrays : {true, false}) {
    MaskedGraph graph(arrays);
    test::write_npy<uint8_t>(graph.path("train.npy"), {1, 0, 1, 1, 0, 0}, {6});
    EXPECT_THAT(graph.roles(), ElementsAre(0, 255, 0, 0, 255, 255));
    EXPECT_THAT(graph.report.lines, Contains("train.npy: a mask, row i is node i"));
  }
}

TEST(PlainMasks, OtherNumbersAreAListOfNodes) {
  MaskedGraph graph;
  test::write_npy<int64_t>(graph.path("train.npy"), {1, 0}, {2});
  test::write_npy<int64_t>(graph.path("val_idx.npy"), {5, 3}, {2});
  EXPECT_THAT(graph.roles(), ElementsAre(0, 0, 255, 1, 255, 1));
  EXPECT_THAT(graph.report.lines, Contains("train.npy: a list of node numbers"));
  EXPECT_THAT(graph.report.lines, Contains("val_idx.npy: a list of node numbers"));
  fs::remove(graph.path("val_idx.npy"));
  test::write_npy<int64_t>(graph.path("train.npy"), {5, 4, 3, 2, 1, 0}, {6});  // as many as there are nodes
  EXPECT_THAT(graph.roles(), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(PlainMasks, TwoNodesMayBeListed) {
  MaskedGraph graph;
  test::write_npy<int64_t>(graph.path("edge_index.npy"), {0, 1}, {2, 1});
  test::write_npy<int32_t>(graph.path("labels.npy"), {0, 1}, {2});
  test::write_npy<int64_t>(graph.path("train.npy"), {0, 1}, {2});
  EXPECT_THAT(graph.roles(), ElementsAre(0, 0));
  fs::rename(graph.path("train.npy"), graph.path("train_mask.npy"));
  EXPECT_THAT(graph.roles(), ElementsAre(255, 0));
}

TEST(PlainMasks, AFileCalledAMaskThatIsNoneIsRefused) {
  MaskedGraph graph;
  const auto error = [&](const std::string& bytes) {
    test::write_bytes(graph.path("train_mask.npy"), bytes);
    return test::import_error(graph.folder / "g");
  };
  EXPECT_THAT(error(test::npy_bytes<int64_t>({1, 0, 5, 1, 0, 0}, {6})),
              AllOf(HasSubstr("train_mask.npy: holds 5, and a mask has 0 and 1"), HasSubstr("train_idx.npy")));
  EXPECT_THAT(error(test::npy_bytes<float>({1, 0, 0.5, 1, 0, 0}, {6})),
              HasSubstr("train_mask.npy: holds 0.5, and a mask has 0 and 1"));
  EXPECT_THAT(error(test::npy_bytes<int64_t>({1, 0, 1}, {3})),
              AllOf(HasSubstr("train_mask.npy: marks 3 nodes, but the graph has 6"), HasSubstr("train_idx.npy")));
}

}  // namespace
}  // namespace cgcn
