#include "partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "common/log.h"
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
  options.method =
      std::array{PartitionMethod::kMetis, PartitionMethod::kMetisRecursive, PartitionMethod::kRandom}[random.below(3)];
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
    const PartitionResult made = ensure_partition(store, options);
    EXPECT_FALSE(made.reused);
    expect_layout_of(made.layout, store.dataset(), options.transductive);
    if (options.parts > 0) {
      EXPECT_LE(made.layout.num_clusters(), options.parts);
    }
    const PartitionResult again = ensure_partition(store, options);
    EXPECT_TRUE(again.reused);
    EXPECT_TRUE(std::ranges::equal(again.layout.order, made.layout.order));
    if (HasFailure()) return;
  }
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
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cgcn
