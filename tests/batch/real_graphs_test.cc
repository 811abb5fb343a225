// Partitions and batches of real graphs: twitch is seven separate ones, debtags has a node of degree 21,815.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "batch/cluster_batches.h"
#include "common/log.h"
#include "io/reader.h"
#include "support.h"

namespace cgcn {
namespace {

Store import(const fs::path& source, const fs::path& target) {
  log::set_level(log::Level::kQuiet);
  StoreWriter writer(target, StagedDirectory::Existing::kRefuse);
  ImportReport report;
  choose_reader(source, {}).read(source, {}, writer, report);
  writer.finish("real");
  return Store(target);
}

// Every node once per epoch; every row of every adjacency has exactly the store's edges to nodes of the same batch.
void expect_exact_epoch(const ClusterLayout& layout, const Dataset& data, uint32_t q) {
  const ClusterBatches batches(layout, {.clusters_per_batch = q, .normalisation = {NormalisationKind::kMean}});
  const auto storage = batches.make_storage();
  std::vector<uint32_t> batch_row(data.num_nodes());  // 0: not in the batch, else row + 1
  std::vector<bool> seen(data.num_nodes());
  size_t nodes = 0;
  for (uint32_t index = 0; index < batches.batches_per_epoch(); ++index) {
    batches.prepare(0, index, *storage);
    const Batch& batch = storage->batch;
    for (uint32_t i = 0; i < batch.inputs.size(); ++i) {
      const NodeId v = layout.order[batch.inputs[i]];
      batch_row[v] = i + 1;
      ASSERT_FALSE(seen[v]);
      seen[v] = true;
    }
    const SparseView& adjacency = batch.adjacencies[0].forward;
    for (uint32_t i = 0; i < adjacency.rows; ++i) {
      std::set<uint32_t> expected;
      for (const NodeId u : data.graph.neighbours(layout.order[batch.inputs[i]]))
        if (batch_row[u] != 0) expected.insert(batch_row[u] - 1);
      const std::set<uint32_t> found(adjacency.column_indices + adjacency.offsets[i],
                                     adjacency.column_indices + adjacency.offsets[i + 1]);
      ASSERT_EQ(found, expected);
      for (uint64_t e = adjacency.offsets[i]; e < adjacency.offsets[i + 1]; ++e)
        ASSERT_EQ(adjacency.values[e], 1.0f / static_cast<float>(expected.size()));
    }
    for (const NodeId r : batch.inputs) batch_row[layout.order[r]] = 0;
    nodes += batch.inputs.size();
  }
  EXPECT_EQ(nodes, layout.data.num_nodes());
}

TEST(RealGraphs, TwitchIsTrainedOnThreeOfItsSevenGraphs) {
  CGCN_DATA_OR_SKIP(folder);
  const test::TemporaryFolder temporary;
  const Store store = import(folder / "twitch", temporary / "s");
  PartitionOptions options;
  options.parts = 40;
  const ClusterLayout layout = ensure_partition(store, options).layout;
  const Dataset data = store.dataset();
  ASSERT_EQ(data.num_graphs(), 7u);
  const std::set<uint32_t> graphs(layout.data.graph_ids.begin(), layout.data.graph_ids.end());
  EXPECT_EQ(graphs.size(), 3u);
  for (NodeId r = 0; r < layout.data.num_nodes(); ++r)
    for (const NodeId s : layout.data.graph.neighbours(r))
      ASSERT_EQ(layout.data.graph_ids[r], layout.data.graph_ids[s]);
  expect_exact_epoch(layout, data, 4);
}

TEST(RealGraphs, DebtagsWithItsHubOfTwentyThousandLinks) {
  CGCN_DATA_OR_SKIP(folder);
  const test::TemporaryFolder temporary;
  const Store store = import(folder / "debtags", temporary / "s");
  const Dataset data = store.dataset();
  uint64_t largest = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v) largest = std::max(largest, data.graph.degree(v));
  ASSERT_EQ(largest, 21'815u);
  for (const bool transductive : {false, true}) {
    PartitionOptions options;
    options.parts = 64;
    options.transductive = transductive;
    const ClusterLayout layout = ensure_partition(store, options).layout;
    expect_exact_epoch(layout, data, 5);
  }
}

}  // namespace
}  // namespace cgcn
