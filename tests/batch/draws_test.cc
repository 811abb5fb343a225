// What a batch draws is a function of exactly these: seed, epoch, number and layer. Exact, not statistical: each test
// fails if one of them is left out or exchanged.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "batch/methods.h"
#include "common/log.h"
#include "common/random.h"
#include "graph/graph_builder.h"
#include "support.h"

namespace cgcn {
namespace {

constexpr NodeId kHubLinks = 40;

CsrGraph graph_with_a_hub() {
  EdgeList edges;
  for (NodeId v = 1; v <= kHubLinks; ++v) edges.add(0, v);
  return build_graph(kHubLinks + 1, edges, {}, nullptr);
}

std::vector<NodeId> drawn(const LayerSampler& sampler, const LayerDraw& draw) {
  const NodeId hub = 0;
  SampledRows rows;
  SamplerScratch scratch;
  sampler.sample(draw, std::span(&hub, 1), rows, scratch);
  return rows.columns;
}

TEST(Draws, NeighboursDependOnSeedEpochNumberAndLayer) {
  const CsrGraph graph = graph_with_a_hub();
  const Normalisation mean{NormalisationKind::kMean, 1};
  std::vector<std::unique_ptr<LayerSampler>> samplers;
  samplers.push_back(
      std::make_unique<NeighbourSampler>(graph, mean, NeighbourSamplerOptions{.fanouts = {10}, .layers = 3}));
  const Normalisation sum{NormalisationKind::kSum, 1};  // with the mean, the hub alone is drawn
  samplers.push_back(std::make_unique<ImportanceSampler>(graph, sum, 20, Importance::kSquared));
  for (const auto& sampler : samplers) {
    const LayerDraw draw{.seed = 1, .epoch = 2, .index = 3, .layer = 2};
    const std::vector<NodeId> first = drawn(*sampler, draw);
    EXPECT_EQ(drawn(*sampler, draw), first);
    LayerDraw other = draw;
    other.seed = 5;
    EXPECT_NE(drawn(*sampler, other), first) << "seed";
    other = draw;
    other.epoch = 5;
    EXPECT_NE(drawn(*sampler, other), first) << "epoch";
    other = draw;
    other.index = 5;
    EXPECT_NE(drawn(*sampler, other), first) << "number";
    other = draw;
    other.layer = 3;
    EXPECT_NE(drawn(*sampler, other), first) << "layer";
  }
}

TEST(Draws, FanoutsCountFromTheLastLayerDown) {
  const CsrGraph graph = graph_with_a_hub();
  const NeighbourSampler sampler(graph, {NormalisationKind::kMean, 1}, {.fanouts = {2, 5}, .layers = 4});
  EXPECT_EQ(drawn(sampler, {.layer = 4}).size(), 2u);
  EXPECT_EQ(drawn(sampler, {.layer = 3}).size(), 5u);
  EXPECT_EQ(drawn(sampler, {.layer = 2}).size(), 5u);
}

// The same through a whole batch: what the option says is what its adjacencies have.
TEST(Draws, FanoutsOfABatchCountFromTheLastLayerDown) {
  log::set_level(log::Level::kQuiet);
  const test::TemporaryFolder folder;
  Dataset data;
  EdgeList edges;
  constexpr NodeId kNodes = 30;
  for (NodeId u = 0; u < kNodes; ++u)
    for (NodeId v = 0; v < u; ++v) edges.add(u, v);  // everyone has 29 edges
  data.graph = build_graph(kNodes, edges, {}, nullptr);
  data.features = FeatureMatrix::dense(std::vector<float>(kNodes, 1.0f), 1);
  data.labels = Labels::single(std::vector<int32_t>(kNodes, 0), 1);
  data.split = std::vector<uint8_t>(kNodes, 0);
  write_store(folder / "s", data, StagedDirectory::Existing::kRefuse);
  PartitionOptions one;
  one.parts = 1;
  const ClusterLayout layout = ensure_partition(Store(folder / "s"), one).layout;
  for (const Method method : {Method::kGraphSage, Method::kVrGcn}) {
    MethodOptions options;
    options.method = method;
    options.targets = 4;
    options.fanout = "2,5";
    const auto batches = make_batch_source(options, layout, {}, 3);
    const auto storage = batches->make_storage();
    batches->prepare(0, 0, *storage);
    const Batch& batch = storage->batch;
    EXPECT_EQ(batch.adjacency(3).forward.num_entries(), 4u * 2);
    EXPECT_EQ(batch.adjacency(2).forward.num_entries(), uint64_t{batch.rows_of_layer(2)} * 5);
  }
  log::set_level(log::Level::kNormal);
}

constexpr NodeId kNodes = 60;
constexpr uint32_t kClusters = 12;
constexpr uint64_t kSeed = 7;

// A path, cut at random.
ClusterLayout make_clusters(const fs::path& store) {
  log::set_level(log::Level::kQuiet);
  Dataset data;
  EdgeList edges;
  for (NodeId v = 0; v + 1 < kNodes; ++v) edges.add(v, v + 1);
  data.graph = build_graph(kNodes, edges, {}, nullptr);
  data.features = FeatureMatrix::dense(std::vector<float>(kNodes, 1.0f), 1);
  data.labels = Labels::single(std::vector<int32_t>(kNodes, 0), 1);
  data.split = std::vector<uint8_t>(kNodes, 0);
  write_store(store, data, StagedDirectory::Existing::kRefuse);
  PartitionOptions partition;
  partition.method = PartitionMethod::kRandom;
  partition.parts = kClusters;
  const ClusterLayout layout = ensure_partition(Store(store), partition).layout;
  log::set_level(log::Level::kNormal);
  return layout;
}

uint32_t cluster_of(const ClusterLayout& layout, NodeId v) {
  const auto offsets = layout.cluster_offsets.span();
  return static_cast<uint32_t>(std::upper_bound(offsets.begin(), offsets.end(), v) - offsets.begin() - 1);
}

// The q clusters of batch i of epoch e are the first of a permutation that seed, e and i give.
TEST(Draws, EveryIndependentBatchHasItsOwnClusters) {
  constexpr uint32_t kPerBatch = 3;
  const test::TemporaryFolder folder;
  const ClusterLayout layout = make_clusters(folder / "s");
  const ClusterBatches batches(
      layout, {.clusters_per_batch = kPerBatch, .draw = ClusterDraw::kIndependent, .normalisation = {}, .seed = kSeed});
  const auto storage = batches.make_storage();
  std::set<std::set<uint32_t>> different;
  for (uint32_t epoch = 0; epoch < 2; ++epoch)
    for (uint32_t i = 0; i < batches.batches_per_epoch(); ++i) {
      std::vector<uint32_t> order(kClusters);
      std::iota(order.begin(), order.end(), 0u);
      Random random(kSeed, Purpose::kBatchOrder, epoch, i, 1);
      for (uint32_t k = 0; k < kPerBatch; ++k) std::swap(order[k], order[k + random.below(kClusters - k)]);
      batches.prepare(epoch, i, *storage);
      std::set<uint32_t> found;
      for (const NodeId v : storage->batch.inputs) found.insert(cluster_of(layout, v));
      EXPECT_EQ(found, std::set<uint32_t>(order.begin(), order.begin() + kPerBatch)) << epoch << ' ' << i;
      different.insert(found);
    }
  EXPECT_GT(different.size(), 5u);  // of eight; 220 are possible
}

// Batch i of epoch e is cluster i of the permutation that seed and e give, and no other.
TEST(Draws, EveryEpochHasItsOwnOrderOfClusters) {
  const test::TemporaryFolder folder;
  const ClusterLayout layout = make_clusters(folder / "s");
  const ClusterBatches batches(layout, {.clusters_per_batch = 1, .normalisation = {}, .seed = kSeed});
  const auto storage = batches.make_storage();
  std::vector<std::vector<uint32_t>> orders;
  for (uint32_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<uint32_t> expected(kClusters);
    std::iota(expected.begin(), expected.end(), 0u);
    Random(kSeed, Purpose::kBatchOrder, epoch).shuffle(std::span(expected));
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < batches.batches_per_epoch(); ++i) {
      batches.prepare(epoch, i, *storage);
      order.push_back(cluster_of(layout, storage->batch.inputs[0]));
    }
    EXPECT_EQ(order, expected) << epoch;
    EXPECT_EQ(std::count(orders.begin(), orders.end(), order), 0) << "the order of an earlier epoch";
    orders.push_back(order);
  }
}

// The targets of an epoch's batches, one after the other, are the permutation of the training nodes that seed and epoch
// give.
TEST(Draws, EveryEpochHasItsOwnOrderOfTargets) {
  const test::TemporaryFolder folder;
  const ClusterLayout layout = make_clusters(folder / "s");
  for (const Method method : {Method::kSgd, Method::kGraphSage, Method::kFastGcn, Method::kVrGcn}) {
    MethodOptions options;
    options.method = method;
    options.targets = 7;
    const auto batches = make_batch_source(options, layout, {.normalisation = {}, .seed = kSeed}, 2);
    const auto storage = batches->make_storage();
    for (uint32_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<NodeId> expected(kNodes), found;
      std::iota(expected.begin(), expected.end(), NodeId{0});
      Random(kSeed, Purpose::kBatchOrder, epoch).shuffle(std::span(expected));
      for (uint32_t i = 0; i < batches->batches_per_epoch(); ++i) {
        batches->prepare(epoch, i, *storage);
        const Batch& batch = storage->batch;
        found.insert(found.end(), batch.inputs.begin(), batch.inputs.begin() + batch.num_outputs);
      }
      EXPECT_EQ(found, expected) << static_cast<int>(method) << ' ' << epoch;
    }
  }
}

}  // namespace
}  // namespace cgcn
