#include "generate/generate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "common/threads.h"
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

TEST(Generate, PpiHasThePapersCounts) {
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
}

TEST(Generate, ThreadsDoNotMatter) {
  const test::TemporaryFolder folder;
  for (const GenerateOptions& options : {GenerateOptions{}, GenerateOptions{.like = ShapeName::kPpi, .scale = 0.1}}) {
    set_thread_count(1);
    const std::string one = generate(folder, options).content_hash;
    set_thread_count(2);
    const std::string two = generate(folder, options).content_hash;
    set_thread_count(0);
    EXPECT_EQ(one, two);
  }
}

}  // namespace
}  // namespace cgcn
