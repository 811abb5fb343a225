#include "batch/cluster_batches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "batch/batch_queue.h"
#include "common/log.h"
#include "normalised_dense.h"
#include "support.h"

namespace cgcn {
namespace {

test::DenseMatrix densify(const SparseView& view) {
  test::DenseMatrix matrix = test::zeros(view.rows, view.columns);
  for (uint32_t i = 0; i < view.rows; ++i)
    for (uint64_t e = view.offsets[i]; e < view.offsets[i + 1]; ++e) {
      EXPECT_LT(view.column_indices[e], view.columns);
      EXPECT_EQ(matrix[i][view.column_indices[e]], 0) << "an entry twice";
      matrix[i][view.column_indices[e]] += view.values[e];
    }
  return matrix;
}

struct Case {
  ClusterLayout layout;
  ClusterBatchOptions options;
};

Case random_case(uint32_t seed, const test::TemporaryFolder& folder) {
  log::set_level(log::Level::kQuiet);
  Random random(seed, Purpose::kTest, 79);
  write_store(folder / "s", test::random_dataset(seed), StagedDirectory::Existing::kReplace);
  PartitionOptions partition;
  partition.method = PartitionMethod::kRandom;
  partition.parts = 1 + random.below(12);
  partition.transductive = random.below(3) > 0;
  Case made{ensure_partition(Store(folder / "s"), partition).layout, {}};
  made.options = {.clusters_per_batch = 1 + random.below(6),
                  .draw = random.below(4) == 0 ? ClusterDraw::kIndependent : ClusterDraw::kPermutation,
                  .normalisation = {test::kAllNormalisations[seed % 7], 0.5f},
                  .seed = seed};
  return made;
}

void expect_exact(const Batch& batch, const Case& made) {
  const Dataset& data = made.layout.data;
  const auto whole = test::dense_adjacency(data.graph);
  const size_t n = batch.inputs.size();
  test::DenseMatrix adjacency = test::zeros(n, n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) adjacency[i][j] = whole[batch.inputs[i]][batch.inputs[j]];
  const auto expected = test::normalise_densely(adjacency, made.options.normalisation);
  ASSERT_EQ(batch.adjacencies.size(), 1u);
  ASSERT_EQ(batch.adjacencies[0].forward.rows, n);
  const auto forward = densify(batch.adjacencies[0].forward), backward = densify(batch.adjacencies[0].backward);
  std::vector<uint32_t> loss_rows;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      EXPECT_NEAR(forward[i][j], expected[i][j], 1e-6 * (1 + expected[i][j]));
      EXPECT_EQ(backward[j][i], forward[i][j]);
    }
    const NodeId v = batch.inputs[i];
    if (data.role(v) == Role::kTrain && (data.labels.multi_label() || data.labels.class_of(v) >= 0))
      loss_rows.push_back(static_cast<uint32_t>(i));
  }
  EXPECT_TRUE(std::ranges::equal(batch.loss_rows, loss_rows));
  EXPECT_EQ(batch.num_outputs, n);
}

TEST(ClusterBatches, AdjacenciesOfRandomGraphsAreExact) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const test::TemporaryFolder folder;
    const Case made = random_case(seed, folder);
    const ClusterBatches batches(made.layout, made.options);
    const uint32_t q = std::min(made.options.clusters_per_batch, made.layout.num_clusters());
    const auto storage = batches.make_storage();
    for (uint32_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<NodeId> seen;
      for (uint32_t index = 0; index < batches.batches_per_epoch(); ++index) {
        batches.prepare(epoch, index, *storage);
        const Batch& batch = storage->batch;
        EXPECT_LE(batch.inputs.size(), batches.limits().max_nodes);
        EXPECT_LE(batch.adjacencies[0].forward.num_entries(), batches.limits().max_entries);
        expect_exact(batch, made);
        seen.insert(seen.end(), batch.inputs.begin(), batch.inputs.end());
      }
      EXPECT_EQ(batches.batches_per_epoch(), (made.layout.num_clusters() + q - 1) / q);
      std::sort(seen.begin(), seen.end());
      if (made.options.draw == ClusterDraw::kPermutation) {
        EXPECT_EQ(seen.size(), made.layout.data.num_nodes());
        EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "a node twice in an epoch";
      }
    }
    if (HasFailure()) return;
  }
}

// What a consumer can tell of a batch.
std::vector<double> fingerprint(const Batch& batch) {
  std::vector<double> all{double(batch.epoch), double(batch.index), double(batch.num_outputs)};
  all.insert(all.end(), batch.inputs.begin(), batch.inputs.end());
  all.insert(all.end(), batch.loss_rows.begin(), batch.loss_rows.end());
  const Adjacency& adjacency = batch.adjacencies[0];
  for (const SparseView* view : {&adjacency.forward, &adjacency.backward}) {
    all.insert(all.end(), view->offsets, view->offsets + view->rows + 1);
    all.insert(all.end(), view->column_indices, view->column_indices + view->num_entries());
    all.insert(all.end(), view->values, view->values + view->num_entries());
  }
  return all;
}

TEST(BatchQueue, GivesTheSameBatchesInOrderFromAnyStart) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const test::TemporaryFolder folder;
    const Case made = random_case(seed, folder);
    const ClusterBatches batches(made.layout, made.options);
    const uint32_t per_epoch = batches.batches_per_epoch(), start = seed % per_epoch;
    const auto storage = batches.make_storage();
    BatchQueue queue(batches, 1, 4, start, 1 + seed % 3);
    for (uint32_t number = per_epoch + start; number < 4 * per_epoch; ++number) {
      batches.prepare(number / per_epoch, number % per_epoch, *storage);
      ASSERT_EQ(fingerprint(queue.next()), fingerprint(storage->batch)) << seed << " " << number;
    }
  }
}

class FailingSource final : public BatchSource {
 public:
  uint32_t batches_per_epoch() const override { return 10; }
  BatchLimits limits() const override { return {}; }
  std::unique_ptr<BatchStorage> make_storage() const override { return std::make_unique<BatchStorage>(); }
  void prepare(uint32_t, uint32_t index, BatchStorage& storage) const override {
    if (index == 3) throw Error("no more");
    storage.batch.index = index;
  }
};

class CountingSource final : public BatchSource {
 public:
  uint32_t batches_per_epoch() const override { return 8; }
  BatchLimits limits() const override { return {}; }
  std::unique_ptr<BatchStorage> make_storage() const override { return std::make_unique<BatchStorage>(); }
  void prepare(uint32_t epoch, uint32_t index, BatchStorage& storage) const override {
    storage.batch.epoch = epoch;
    storage.batch.index = index;
  }
};

TEST(BatchQueue, GivesAShareOfTheBatches) {
  const CountingSource batches;
  const uint32_t per_epoch = batches.batches_per_epoch();
  // Every third, from the second on; of the first epoch only those behind the start.
  BatchQueue queue(batches, 1, 4, 2, 2, [](uint32_t index) { return index + (4 - index % 3) % 3; });
  for (uint32_t epoch = 1; epoch < 4; ++epoch)
    for (uint32_t index = epoch == 1 ? 4 : 1; index < per_epoch; index += 3) {
      const Batch& batch = queue.next();
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(batch.index, index);
    }
  EXPECT_ANY_THROW(queue.next());
  BatchQueue nothing(batches, 0, 2, 0, 2, [](uint32_t) { return 8u; });
  EXPECT_ANY_THROW(nothing.next());
}

TEST(BatchQueue, PassesOnWhatPreparingThrewAndStopsCleanly) {
  const FailingSource source;
  BatchQueue queue(source, 0, 1);
  for (uint32_t index = 0; index < 3; ++index) EXPECT_EQ(queue.next().index, index);
  EXPECT_THROW(queue.next(), Error);
  const BatchQueue unused(source, 0, 1);
}

}  // namespace
}  // namespace cgcn
