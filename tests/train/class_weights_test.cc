// Balanced class weights, by hand. tests/cli/scores_test.py compares them with scikit-learn's.
#include "train/class_weights.h"

#include <gmock/gmock.h>

namespace cgcn {
namespace {

using testing::ElementsAre;

Dataset labelled(Labels labels, std::vector<uint8_t> split) {
  Dataset data;
  data.graph = CsrGraph(std::vector<EdgeOffset>(split.size() + 1, 0), std::vector<NodeId>(), {}, false);
  data.labels = std::move(labels);
  data.split = std::move(split);
  return data;
}

// Three classes, of which training nodes have two; the node without a label and the one of the test do not count.
TEST(ClassWeights, ClassesThatNoTrainingNodeHasDoNotCount) {
  const Dataset data = labelled(Labels::single(std::vector<int32_t>{0, 0, 0, 1, -1, 2}, 3), {0, 0, 0, 0, 0, 2});
  EXPECT_THAT(read_class_weights("balanced", data), ElementsAre(4.0f / (2 * 3), 4.0f / (2 * 1), 1.0f));
  EXPECT_TRUE(read_class_weights("none", data).empty());
}

TEST(ClassWeights, OfBitsAreTheirOdds) {
  const Dataset data = labelled(Labels::multi(std::vector<uint8_t>{1, 2, 2, 4}, 3), {0, 0, 0, 2});
  EXPECT_THAT(read_class_weights("balanced", data), ElementsAre(2.0f, 0.5f, 1.0f));
}

}  // namespace
}  // namespace cgcn
