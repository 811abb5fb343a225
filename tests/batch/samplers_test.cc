// The samplers against what their papers promise: unbiased rows with the variance of theory, whole rows if nothing
// is left out; and the batches made of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "batch/batch_queue.h"
#include "batch/methods.h"
#include "batch/sampled_batches.h"
#include "common/log.h"
#include "method_names.h"
#include "normalised_dense.h"
#include "random_dataset.h"
#include "support.h"

namespace cgcn {
namespace {

using test::DenseMatrix;

// A graph with a hub, so that one row has many edges, and with a loop.
CsrGraph star_graph() {
  EdgeList edges(true);
  for (NodeId v = 1; v < 12; ++v) edges.add(0, v, 0.5f + 0.1f * static_cast<float>(v));
  for (NodeId v = 1; v < 6; ++v) edges.add(v, v + 6, 1.5f);
  edges.add(0, 0, 0.7f);
  return build_graph(13, edges, {.directed = false, .keep_self_loops = true}, nullptr);
}

struct RowMoments {
  std::vector<double> mean;                   // of every entry of the row
  std::vector<double> squares;                // mean of its square
  double value_mean = 0, value_variance = 0;  // of the row times x
};

double x_of(NodeId v) { return 1 + std::sin(3.0 * v); }

RowMoments measure_row(const LayerSampler& sampler, NodeId row, uint32_t draws, NodeId n) {
  RowMoments moments{std::vector<double>(n), std::vector<double>(n)};
  SampledRows rows;
  SamplerScratch scratch;
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < draws; ++i) {
    sampler.sample({7, i, 3, 2}, std::span(&row, 1), rows, scratch);
    std::vector<double> entries(n);
    for (size_t e = 0; e < rows.columns.size(); ++e) entries[rows.columns[e]] += rows.values[e];
    double value = 0;
    for (NodeId u = 0; u < n; ++u) {
      moments.mean[u] += entries[u] / draws;
      moments.squares[u] += entries[u] * entries[u] / draws;
      value += entries[u] * x_of(u);
    }
    sum += value;
    squares += value * value;
  }
  moments.value_mean = sum / draws;
  moments.value_variance = squares / draws - moments.value_mean * moments.value_mean;
  return moments;
}

struct SamplerCase {
  std::string name;
  NormalisationKind normalisation;
  uint32_t fanout;  // of the hub's n = 11 edges, its loop apart
  bool importance = false;
};

class UnbiasedSampler : public testing::TestWithParam<SamplerCase> {};

TEST_P(UnbiasedSampler, HasTheMeanAndVarianceOfTheory) {
  const SamplerCase& c = GetParam();
  const CsrGraph graph = star_graph();
  const Normalisation normalisation{c.normalisation};
  const DenseMatrix exact = test::normalise_densely(test::dense_adjacency(graph), normalisation);
  std::unique_ptr<LayerSampler> sampler;
  if (c.importance)
    sampler = std::make_unique<ImportanceSampler>(graph, normalisation, c.fanout, Importance::kSquared);
  else
    sampler = std::make_unique<NeighbourSampler>(
        graph, normalisation, NeighbourSamplerOptions{.fanouts = {c.fanout}, .replacement = true, .layers = 2});
  constexpr uint32_t kDraws = 400000;  // the rare nodes of importance sampling make tails heavy
  const NodeId n = graph.num_nodes();
  const RowMoments found = measure_row(*sampler, 0, kDraws, n);

  // The terms among which is drawn, and the variance of their estimated sum.
  std::vector<double> terms;
  double sum = 0, expected_variance = 0, weighted_squares = 0;
  for (NodeId u = 0; u < n; ++u) {
    const bool drawn = exact[0][u] != 0 && (u != 0 || !normalisation.has_diagonal());
    if (drawn || c.importance) terms.push_back(exact[0][u] * x_of(u));
    sum += exact[0][u] * x_of(u);
    if (c.importance) {
      const double q = static_cast<const ImportanceSampler&>(*sampler).probability(u);
      if (q > 0) weighted_squares += std::pow(exact[0][u] * x_of(u), 2) / q;
    }
  }
  const auto count = static_cast<double>(terms.size()), s = static_cast<double>(c.fanout);
  double mean = 0, spread = 0;
  for (const double term : terms) mean += term / count;
  for (const double term : terms) spread += (term - mean) * (term - mean);
  if (c.importance)
    expected_variance = (weighted_squares - sum * sum) / s;
  else if (s > count)  // with replacement
    expected_variance = count * spread / s;
  else
    expected_variance = count * count / s * (1 - s / count) * spread / (count - 1);
  EXPECT_NEAR(found.value_variance, expected_variance, 0.04 * expected_variance);
  EXPECT_NEAR(found.value_mean, sum, 4.5 * std::sqrt(expected_variance / kDraws));
  for (NodeId u = 0; u < n; ++u) {
    const double deviation = std::sqrt(std::max(0.0, found.squares[u] - found.mean[u] * found.mean[u]));
    EXPECT_NEAR(found.mean[u], exact[0][u], 4.5 * deviation / std::sqrt(kDraws) + 1e-6) << u;
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, UnbiasedSampler,
                         testing::Values(SamplerCase{"WithoutReplacement", NormalisationKind::kMean, 4},
                                         SamplerCase{"WithoutReplacementDiagonal", NormalisationKind::kSelf, 3},
                                         SamplerCase{"WithoutReplacementSymmetric", NormalisationKind::kSymmetric, 5},
                                         SamplerCase{"WithReplacement", NormalisationKind::kMean, 30},
                                         SamplerCase{"Importance", NormalisationKind::kMean, 4, true},
                                         SamplerCase{"ImportanceSymmetric", NormalisationKind::kSymmetric, 9, true}),
                         [](const auto& info) { return info.param.name; });

TEST(ImportanceSampler, DrawsByTheColumnsNorms) {
  const CsrGraph graph = star_graph();
  const Normalisation normalisation{NormalisationKind::kSelf};
  const DenseMatrix exact = test::normalise_densely(test::dense_adjacency(graph), normalisation);
  for (const Importance importance : {Importance::kSquared, Importance::kNorm}) {
    const ImportanceSampler sampler(graph, normalisation, 5, importance);
    std::vector<double> norms(graph.num_nodes());
    double total = 0;
    for (NodeId u = 0; u < graph.num_nodes(); ++u) {
      for (NodeId v = 0; v < graph.num_nodes(); ++v) norms[u] += exact[v][u] * exact[v][u];
      if (importance == Importance::kNorm) norms[u] = std::sqrt(norms[u]);
      total += norms[u];
    }
    for (NodeId u = 0; u < graph.num_nodes(); ++u) EXPECT_NEAR(sampler.probability(u), norms[u] / total, 1e-6);
  }
}

// With H̄ = μ = H the rows add up to N(A) in every single draw; and the part that multiplies h has, in the mean over
// draws, the squared entries of N(A) itself (CVD), so that independent noise keeps its variance.
TEST(ControlVariates, AddUpToTheWholeRowAndKeepTheNoise) {
  const CsrGraph graph = star_graph();
  for (const NormalisationKind kind : test::kAllNormalisations) {
    const Normalisation normalisation{kind, 0.5f};
    const DenseMatrix exact = test::normalise_densely(test::dense_adjacency(graph), normalisation);
    for (const ControlVariate control : {ControlVariate::kCv, ControlVariate::kCvd}) {
      const NeighbourSampler sampler(graph, normalisation, {.fanouts = {2}, .control = control, .layers = 3});
      SampledRows rows;
      SamplerScratch scratch;
      const NodeId row = 0, n = graph.num_nodes();
      std::vector<double> squares(n);
      constexpr uint32_t kDraws = 20000;
      for (uint32_t i = 0; i < kDraws; ++i) {
        sampler.sample({1, i, 0, 2}, std::span(&row, 1), rows, scratch);
        std::vector<double> total(n);
        for (size_t e = 0; e < rows.columns.size(); ++e) {
          total[rows.columns[e]] += rows.values[e] + (control == ControlVariate::kCvd ? rows.mean_values[e] : 0);
          squares[rows.columns[e]] += double{rows.values[e]} * rows.values[e] / kDraws;
        }
        for (size_t e = 0; e < rows.history_columns.size(); ++e)
          total[rows.history_columns[e]] += rows.history_values[e];
        for (NodeId u = 0; u < n; ++u)
          ASSERT_NEAR(total[u], exact[0][u], 1e-5 * (1 + exact[0][u])) << normalisation.name();
      }
      for (NodeId u = 0; control == ControlVariate::kCvd && u < n; ++u)
        EXPECT_NEAR(squares[u], exact[0][u] * exact[0][u], 0.1 * exact[0][u] * exact[0][u]) << u;
    }
  }
}

class Methods : public testing::TestWithParam<Method> {
 protected:
  Methods() { log::set_level(log::Level::kQuiet); }
  static MethodOptions small_options() {
    MethodOptions options;
    options.method = GetParam();
    options.targets = 7;
    options.fanout = "2,3";
    options.layer_nodes = 5;
    return options;
  }
};

void expect_transposed(const Adjacency& adjacency) {
  std::set<std::tuple<uint32_t, uint32_t, float>> forward, backward;
  for (uint32_t i = 0; i < adjacency.forward.rows; ++i)
    for (uint64_t e = adjacency.forward.offsets[i]; e < adjacency.forward.offsets[i + 1]; ++e)
      EXPECT_TRUE(forward.emplace(i, adjacency.forward.column_indices[e], adjacency.forward.values[e]).second);
  for (uint32_t j = 0; j < adjacency.backward.rows; ++j)
    for (uint64_t e = adjacency.backward.offsets[j]; e < adjacency.backward.offsets[j + 1]; ++e)
      backward.emplace(adjacency.backward.column_indices[e], j, adjacency.backward.values[e]);
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(adjacency.forward.rows, adjacency.backward.columns);
  EXPECT_EQ(adjacency.forward.columns, adjacency.backward.rows);
}

// Adjacencies that fit each other, edges that the graph has, and every training node once per epoch.
TEST_P(Methods, BatchesOfRandomGraphsAreWhole) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const test::TemporaryFolder folder;
    write_store(folder / "s", test::random_dataset(seed), StagedDirectory::Existing::kRefuse);
    PartitionOptions asked;
    asked.transductive = seed % 2 == 0;
    const MethodOptions options = small_options();
    const ClusterLayout layout = ensure_partition(Store(folder / "s"), options.partition(asked)).layout;
    const Normalisation normalisation{test::kAllNormalisations[seed % 7], 0.5f};
    const DenseMatrix exact = test::normalise_densely(test::dense_adjacency(layout.data.graph), normalisation);
    const uint32_t layers = 2 + seed % 3;
    const auto source = make_batch_source(options, layout, {.normalisation = normalisation, .seed = seed}, layers);
    std::multiset<NodeId> seen, expected;
    for (NodeId v = 0; v < layout.data.num_nodes(); ++v)
      if (layout.data.is_trained_on(v)) expected.insert(v);
    const auto storage = source->make_storage();
    for (uint32_t index = 0; index < source->batches_per_epoch(); ++index) {
      source->prepare(1, index, *storage);
      const Batch& batch = storage->batch;
      EXPECT_EQ(std::set<NodeId>(batch.inputs.begin(), batch.inputs.end()).size(), batch.inputs.size());
      for (const uint32_t r : batch.loss_rows) seen.insert(batch.inputs[r]);
      EXPECT_EQ(batch.num_outputs, batch.rows_of_layer(layers));
      uint64_t links = 0, sources = 0;
      for (uint32_t layer = 2; layer <= layers; ++layer) {
        const Adjacency& adjacency = batch.adjacency(layer);
        EXPECT_EQ(adjacency.forward.columns, batch.rows_of_layer(layer - 1));
        EXPECT_LE(adjacency.forward.rows, adjacency.forward.columns);
        expect_transposed(adjacency);
        links += adjacency.forward.offsets[adjacency.forward.rows];
        if (!batch.remainders.empty()) links += batch.remainders[layer - 2].of_history.num_entries();
        sources += batch.rows_of_layer(layer - 1);
        for (uint32_t i = 0; i < adjacency.forward.rows; ++i)
          for (uint64_t e = adjacency.forward.offsets[i]; e < adjacency.forward.offsets[i + 1]; ++e)
            EXPECT_NE(exact[batch.inputs[i]][batch.inputs[adjacency.forward.column_indices[e]]], 0);
      }
      EXPECT_EQ(batch.num_links(layers), links);
      EXPECT_EQ(batch.num_sources(layers), sources);
    }
    EXPECT_EQ(seen, expected);
    if (HasFailure()) return;
  }
}

TEST_P(Methods, WithAllNeighboursRowsAreThoseOfTheWholeMatrix) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const test::TemporaryFolder folder;
    write_store(folder / "s", test::random_dataset(seed), StagedDirectory::Existing::kRefuse);
    MethodOptions options = small_options();
    options.fanout = "0";
    options.layer_nodes = 0;
    const ClusterLayout layout = ensure_partition(Store(folder / "s"), options.partition({})).layout;
    const Normalisation normalisation{test::kAllNormalisations[seed % 7], 0.5f};
    const DenseMatrix exact = test::normalise_densely(test::dense_adjacency(layout.data.graph), normalisation);
    const auto source = make_batch_source(options, layout, {.normalisation = normalisation}, 3);
    if (source->batches_per_epoch() == 0) continue;
    const auto storage = source->make_storage();
    source->prepare(0, 0, *storage);
    const Batch& batch = storage->batch;
    for (uint32_t layer = 2; layer <= 3; ++layer) {
      const SparseView& view = batch.adjacency(layer).forward;
      for (uint32_t i = 0; i < view.rows; ++i) {
        std::vector<double> row(exact.size());
        for (uint64_t e = view.offsets[i]; e < view.offsets[i + 1]; ++e)
          row[batch.inputs[view.column_indices[e]]] += view.values[e];
        for (size_t u = 0; u < row.size(); ++u)
          EXPECT_NEAR(row[u], exact[batch.inputs[i]][u], 1e-6 * (1 + std::abs(row[u])));
      }
      const Remainder* remainder = batch.remainder(layer);
      EXPECT_EQ(remainder == nullptr ? 0 : remainder->of_history.num_entries(), 0u);
    }
    if (HasFailure()) return;
  }
}

// Preparing on a thread, from any start, gives what preparing one by one gives.
TEST_P(Methods, ABatchIsAFunctionOfItsNumber) {
  const test::TemporaryFolder folder;
  write_store(folder / "s", test::random_dataset(8), StagedDirectory::Existing::kRefuse);
  const MethodOptions options = small_options();
  PartitionOptions asked;
  asked.transductive = true;
  const ClusterLayout layout = ensure_partition(Store(folder / "s"), options.partition(asked)).layout;
  const auto source = make_batch_source(options, layout, {.normalisation = {NormalisationKind::kMean}}, 3);
  const uint32_t per_epoch = source->batches_per_epoch();
  BatchQueue queue(*source, 1, 4, per_epoch - 1);
  for (uint32_t number = 2 * per_epoch - 1; number < 4 * per_epoch; ++number) {
    const auto fresh = source->make_storage();
    source->prepare(number / per_epoch, number % per_epoch, *fresh);
    const Batch& queued = queue.next();
    EXPECT_TRUE(std::ranges::equal(queued.inputs, fresh->batch.inputs));
    for (uint32_t layer = 2; layer <= 3; ++layer) {
      const SparseView &a = queued.adjacency(layer).forward, &b = fresh->batch.adjacency(layer).forward;
      EXPECT_TRUE(std::equal(a.values, a.values + a.num_entries(), b.values, b.values + b.num_entries()));
      EXPECT_TRUE(std::equal(a.column_indices, a.column_indices + a.num_entries(), b.column_indices,
                             b.column_indices + b.num_entries()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Methods, testing::ValuesIn(test::kOtherMethods),
                         [](const auto& info) { return test::name_of(info.param); });

TEST(MethodOptions, FanoutsAreNumbersWithCommas) {
  MethodOptions options;
  OptionList list;
  options.list_options(list);
  list.set("method", "graphsage", "");
  EXPECT_EQ(options.fanouts(), (std::vector<uint32_t>{10, 25}));
  list.set("fanout", "5,0,7", "");
  EXPECT_EQ(options.fanouts(), (std::vector<uint32_t>{5, 0, 7}));
  for (const char* wrong : {"", "5,", ",5", "five", "5 6", "-1", "5;6", "1000001", "5,4000000000"})
    EXPECT_THROW(list.set("fanout", wrong, ""), Error) << wrong;
  EXPECT_THROW(list.set("layer-nodes", "1000001", ""), Error);
}

TEST(MethodsWithoutClusters, AWrongPartitionIsRefusedAsEverywhere) {
  PartitionOptions asked;
  asked.method = PartitionMethod::kFile;  // without a file
  for (const Method method : {Method::kCluster, Method::kSgd}) {
    MethodOptions options;
    options.method = method;
    EXPECT_NE(test::message_of<Error>([&] { options.partition(asked); }).find("--from FILE"), std::string::npos);
  }
}

}  // namespace
}  // namespace cgcn
