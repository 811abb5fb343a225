#include "partition/quality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "common/log.h"
#include "random_dataset.h"
#include "support.h"

namespace cgcn {
namespace {

// Everything once more, by counting pairs of nodes.
TEST(Quality, FiguresOfRandomPartitionsAreThoseCountedByHand) {
  log::set_level(log::Level::kQuiet);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const test::TemporaryFolder folder;
    write_store(folder / "s", test::random_dataset(seed), StagedDirectory::Existing::kRefuse);
    PartitionOptions options;
    options.method = PartitionMethod::kRandom;
    options.parts = 1 + seed % 7;
    options.transductive = seed % 2 == 0;
    const ClusterLayout layout = ensure_partition(Store(folder / "s"), options).layout;
    const uint32_t p = layout.num_clusters(), q = 1 + seed % 3;
    const PartitionQuality quality = measure_quality(layout, q, seed);
    const Dataset& data = layout.data;
    const auto a = test::dense_adjacency(data.graph);
    std::vector<uint32_t> cluster(data.num_nodes()), order(p), batch(p);
    for (uint32_t c = 0; c < p; ++c)
      for (NodeId r = layout.cluster_offsets[c]; r < layout.cluster_offsets[c + 1]; ++r) cluster[r] = c;
    shuffle_clusters(order, seed, 0);
    for (uint32_t i = 0; i < p; ++i) batch[order[i]] = i / quality.clusters_per_batch;
    uint64_t links = 0, cut = 0, in_batches = 0;
    for (NodeId i = 0; i < data.num_nodes(); ++i)
      for (NodeId j = 0; j < data.num_nodes(); ++j) {
        if (a[i][j] == 0) continue;
        if (data.graph.directed() || i <= j) {
          ++links;
          cut += cluster[i] != cluster[j] ? 1 : 0;
        }
        in_batches += batch[cluster[i]] == batch[cluster[j]] ? 1 : 0;
      }
    EXPECT_EQ(quality.links, links);
    EXPECT_EQ(quality.links_cut, cut);
    EXPECT_DOUBLE_EQ(quality.mean_batch_entries * quality.batches, static_cast<double>(in_batches));
    EXPECT_EQ(quality.batches, (p + quality.clusters_per_batch - 1) / quality.clusters_per_batch);
    EXPECT_GE(quality.balance(), 1);
    if (HasFailure()) return;
  }
}

TEST(Quality, EntropyTellsCommunitiesFromChance) {
  log::set_level(log::Level::kQuiet);
  const test::TemporaryFolder folder;
  // Four cliques of 16, a class each.
  EdgeList edges;
  std::vector<int32_t> classes(64);
  for (NodeId u = 0; u < 64; ++u) {
    classes[u] = static_cast<int32_t>(u / 16);
    for (NodeId v = u / 16 * 16; v < u; ++v) edges.add(u, v);
  }
  Dataset data;
  data.name = "cliques";
  data.graph = build_graph(64, edges, {}, nullptr);
  data.features = FeatureMatrix::identity(64);
  data.labels = Labels::single(classes, 4);
  data.split = std::vector<uint8_t>(64, 0);
  write_store(folder / "s", data, StagedDirectory::Existing::kRefuse);
  PartitionOptions options;
  options.parts = 4;
  const PartitionQuality quality = measure_quality(ensure_partition(Store(folder / "s"), options).layout, 1, 1);
  EXPECT_EQ(quality.links_cut, 0u);
  EXPECT_EQ(quality.entropy, (std::vector<double>{0, 0, 0, 0}));
  ASSERT_EQ(quality.random_entropy.size(), 4u);
  for (const double entropy : quality.random_entropy) {
    EXPECT_GT(entropy, 1.5);  // bits: in nats it would be 1.39 at most
    EXPECT_LE(entropy, 2);
  }
  const auto json = quality.to_json();
  EXPECT_EQ(json.at("links_kept_share"), 1.0);
  EXPECT_NE(quality.to_table().find("100.0 %"), std::string::npos);
}

}  // namespace
}  // namespace cgcn
