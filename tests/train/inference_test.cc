// Exact evaluation: equal to the training path's forward pass on a batch that is the whole graph, for every kind of
// data and model; and the same bits in little memory and on any number of threads.
#include "train/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "batch/cluster_batches.h"
#include "common/log.h"
#include "common/threads.h"
#include "generate/generate.h"
#include "graph/graph_builder.h"
#include "kernels/gemm.h"
#include "random_dataset.h"
#include "support.h"
#include "train/evaluation.h"

namespace cgcn {
namespace {

using kernels::Precision;

constexpr uint64_t kPlenty = uint64_t{1} << 30;
constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBFloat16};

Model make_model(const Dataset& data, const ModelOptions& options) {
  return {options,
          {data.features.columns(), !data.features.is_dense(), data.labels.num_classes(), data.labels.multi_label()},
          5};
}

std::vector<float> run(const Model& model, const InferenceInput& input, uint32_t layer, uint64_t memory,
                       bool* spills = nullptr) {
  const Inference inference(model, input, memory, false, layer);
  if (spills != nullptr) *spills = inference.spills();
  const SlabMatrix out = inference.run();
  std::vector<float> scratch(out.rows() * out.columns());
  const float* rows = out.read_rows({0, out.rows()}, scratch.data()).data;
  return {rows, rows + scratch.size()};
}

// The rows as they come, 512 at a time, twice.
std::vector<float> collect(const Inference& inference, const StageInput& input) {
  std::vector<float> found[2];
  for (std::vector<float>& values : found)
    inference.for_each_rows(input, 512, [&](kernels::ConstMatrix rows, NodeId first) {
      EXPECT_EQ(values.size(), first * rows.columns);
      EXPECT_EQ(rows.stride, rows.columns);
      values.insert(values.end(), rows.data, rows.data + rows.rows * rows.columns);
    });
  EXPECT_EQ(found[0], found[1]);
  return found[0];
}

// As usual, with norms before convolutions, and with rows that are carried past layers.
std::array<ModelOptions, 3> make_options() {
  ModelOptions usual;
  usual.hidden = 40;
  ModelOptions before = usual, carrying = usual;
  before.norm_place = NormPlace::kBefore;
  before.input_projection = before.residual = true;
  carrying.input_projection = carrying.batch_norm = true;
  carrying.initial_residual = 0.1f;
  carrying.jumping = Jumping::kConcat;
  return {usual, before, carrying};
}

class InferenceTest : public testing::Test {
 protected:
  InferenceTest() { log::set_level(log::Level::kQuiet); }
  ~InferenceTest() override {
    set_thread_count(0);
    log::set_level(log::Level::kNormal);
  }
  Store make_store(NodeId nodes, uint32_t features = GenerateOptions().features) {
    GenerateOptions generated;
    generated.nodes = nodes;
    generated.features = features;
    generate_store(folder_ / "store", generated, StagedDirectory::Existing::kRefuse);
    return Store(folder_ / "store");
  }
  test::TemporaryFolder folder_;
};

TEST_F(InferenceTest, EqualsTheForwardPassOnTheWholeGraph) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const fs::path path = folder_ / std::to_string(seed);
    write_store(path, test::random_dataset(seed), StagedDirectory::Existing::kRefuse);
    const Store store(path);
    const Dataset data = store.dataset();
    Random random(seed, Purpose::kTest, 1);
    ModelOptions options;
    options.layers = 1 + random.below(4);
    options.hidden = 1 + random.below(20);
    options.convolution = random.below(2) == 0 ? ConvolutionForm::kConcat : ConvolutionForm::kPlain;
    options.normalisation = static_cast<NormalisationKind>(random.below(7));
    options.lambda = 0.5f;
    options.residual = random.below(2) == 0;
    options.bias = random.below(2) == 0;
    options.layer_norm = random.below(4) > 0;
    if (random.below(3) == 0) options.head = HeadKind::kDense;
    if (random.below(3) == 0) options.norm_place = NormPlace::kBefore;
    options.input_projection = random.below(3) == 0;
    options.batch_norm = random.below(3) == 0;
    if (options.norm_place == NormPlace::kAfter) options.jumping = static_cast<Jumping>(random.below(3));
    if (options.input_projection && random.below(2) == 0) options.initial_residual = 0.2f;
    if (random.below(2) == 0) options.identity_mapping = 0.5f;
    PartitionOptions partition;
    partition.parts = 1;
    partition.transductive = true;
    const ClusterLayout layout = ensure_partition(store, partition).layout;
    const ClusterBatches batches(
        layout, {.normalisation = options.layer_normalisation(), .aggregates_input = options.input_projection});
    const auto storage = batches.make_storage();
    batches.prepare(0, 0, *storage);
    const size_t classes = data.labels.num_classes();
    const FeatureMatrix batch_aggregated = aggregated_features(layout, options.product_normalisation());
    const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
    for (const Precision precision : kPrecisions) {
      SCOPED_TRACE(static_cast<int>(precision));
      options.precision = precision;
      Model model = make_model(data, options);
      model.reserve(batches.limits());
      std::vector<float> expected(data.num_nodes() * classes);
      model.predict(storage->batch, {layout.data.features, batch_aggregated, layout.data.labels}, expected.data());
      const std::vector<float> logits = run(model, {data.graph, data.features, aggregated}, options.layers, kPlenty);
      float largest = 0;
      for (const float value : expected) largest = std::max(largest, std::abs(value));
      // Rounded rows differ where the two round at other places.
      const float tolerance = precision == Precision::kFloat32 ? 2e-4f : 0.03f;
      for (NodeId row = 0; row < data.num_nodes(); ++row)
        for (size_t c = 0; c < classes; ++c) {
          const float value = expected[row * classes + c];
          const float size = precision == Precision::kFloat32 ? 1 + std::abs(value) : largest;
          ASSERT_NEAR(logits[layout.order[row] * classes + c], value, tolerance * size) << row;
        }
    }
  }
}

// H_1 is what a product of the rounded A·X and W gives, summed in double; H_2 that of the rounded H_1 and its rounded
// mean. What is given is not rounded.
TEST_F(InferenceTest, InBFloat16IsNearThePlainSumsOfRoundedNumbers) {
  const Store store = make_store(700, 21);
  const Dataset data = store.dataset();
  ModelOptions options;
  options.layers = 3;
  options.hidden = 19;
  options.convolution = ConvolutionForm::kPlain;
  options.layer_norm = false;
  options.precision = Precision::kBFloat16;
  const Model model = make_model(data, options);
  const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
  const auto rounded = [](double value) { return double{to_float(to_bfloat16(static_cast<float>(value)))}; };
  const auto product = [&](const std::vector<double>& rows, uint32_t layer) {
    const Parameter& weight = model.parameters()[layer - 1];
    const float* w = model.values().data() + weight.offset;
    std::vector<double> out(data.num_nodes() * weight.columns);
    for (size_t r = 0; r < data.num_nodes(); ++r)
      for (size_t k = 0; k < weight.rows; ++k)
        for (size_t c = 0; c < weight.columns; ++c)
          out[r * weight.columns + c] += rounded(rows[r * weight.rows + k]) * rounded(w[k * weight.columns + c]);
    for (double& value : out) value = std::max(0.0, value);
    return out;
  };
  const auto expect_near = [&](const std::vector<double>& expected, uint32_t layer) {
    const std::vector<float> found = run(model, {data.graph, data.features, aggregated}, layer, kPlenty);
    ASSERT_EQ(found.size(), expected.size());
    size_t exact = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      // A number of the sums that lies between two in bfloat16 may go to either.
      ASSERT_NEAR(found[i], expected[i], layer == 1 ? 1e-5 : 4e-3) << i;
      exact += found[i] != to_float(to_bfloat16(found[i]));
    }
    EXPECT_GT(exact, found.size() / 4) << "what is given was rounded";
  };
  std::vector<double> rows;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    for (const float value : aggregated.dense_row(v)) rows.push_back(value);
  rows = product(rows, 1);
  expect_near(rows, 1);
  std::vector<double> means(rows.size());
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    for (const NodeId u : data.graph.neighbours(v))
      for (size_t c = 0; c < options.hidden; ++c)
        means[v * options.hidden + c] += rounded(rows[u * options.hidden + c]) / data.graph.degree(v);
  expect_near(product(means, 2), 2);
}

// Rows between layers take half the bytes; what the narrow last layer makes of them, and the logits, are float32.
TEST_F(InferenceTest, InBFloat16EmbeddingsTakeHalfTheMemory) {
  const Store store = make_store(1000);
  const Dataset data = store.dataset();
  ModelOptions options;
  options.hidden = 200;
  const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
  const InferenceInput input{data.graph, data.features, aggregated};
  for (const Precision precision : kPrecisions) {
    options.precision = precision;
    const Model model = make_model(data, options);
    ASSERT_TRUE(model.stages().back().narrows());
    const uint64_t row = 200 * kernels::bytes_of(precision) + 2 * data.labels.num_classes() * sizeof(float);
    const uint64_t scratch = Inference::least_memory(model, 1000) - 1000 * sizeof(float);
    EXPECT_FALSE(Inference(model, input, scratch + 1000 * row, false).spills());
    EXPECT_TRUE(Inference(model, input, scratch + 1000 * row - 1, false).spills());
  }
}

TEST_F(InferenceTest, LittleMemoryAndThreadsChangeNoBit) {
  const Store store = make_store(1500);
  const Dataset data = store.dataset();
  const auto [usual, before, carrying] = make_options();
  const FeatureMatrix aggregated = aggregated_features(store, usual.product_normalisation());
  const InferenceInput input{data.graph, data.features, aggregated};
  std::vector<ModelOptions> all{usual, before, carrying};
  for (ModelOptions options : {usual, before, carrying}) {
    options.precision = Precision::kBFloat16;
    all.push_back(options);
  }
  for (const ModelOptions& options : all) {
    const Model model = make_model(data, options);
    set_thread_count(1);
    const uint64_t column = 1500 * kernels::bytes_of(options.precision);
    const uint64_t scratch = Inference::least_memory(model, 1500) - 1500 * sizeof(float);
    for (uint32_t layer = 1; layer <= 3; ++layer) {
      bool spills = false;
      const std::vector<float> expected = run(model, input, layer, kPlenty, &spills);
      EXPECT_FALSE(spills);
      for (const uint64_t columns : {48, 16, 4}) {  // 48: room for all that the narrow last layer takes and gives
        EXPECT_EQ(run(model, input, layer, scratch + columns * column, &spills), expected);
        EXPECT_TRUE(spills || (layer == 1 && columns > options.hidden));
        const Inference inference(model, input, scratch + columns * column, false, layer);
        EXPECT_EQ(collect(inference, inference.run_below()), expected);
      }
      set_thread_count(3);
      EXPECT_EQ(run(model, input, layer, kPlenty), expected);
      set_thread_count(1);
    }
  }
  const Model model = make_model(data, usual);
  EXPECT_THAT(test::message_of<Error>([&] { run(model, input, 3, 1000); }), testing::HasSubstr("--memory"));
}

// H_1 is computed again if its features are few and take fewer bytes than a row of it; else it is kept in a file.
TEST_F(InferenceTest, RowsOfTheFirstLayerAreComputedAgainOrKept) {
  ModelOptions options;
  options.hidden = 128;
  for (const uint32_t features : {30, 60, 150}) {
    SCOPED_TRACE(features);
    const Store store = make_store(1500, features);
    const Dataset data = store.dataset();
    const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
    InferenceInput input{data.graph, data.features, aggregated};
    std::vector<NodeId> clustered(1500);
    for (NodeId i = 0; i < 1500; ++i) clustered[i] = (i * 7 + 3) % 1500;
    const InferenceOrder order(data.graph, clustered, std::vector<NodeId>{0, 700, 1500});
    const uint64_t graph = OrderedRows::bytes(data.graph, options.layer_normalisation());
    for (const Precision precision : kPrecisions)
      for (const bool ordered : {false, true}) {
        options.precision = precision;
        input.order = ordered ? &order : nullptr;
        const Model model = make_model(data, options);
        const uint64_t little = Inference::least_memory(model, 1500) + graph + 2 * 16 * 1500 * sizeof(float);
        const Inference inference(model, input, little, false, 2);
        EXPECT_TRUE(inference.spills());
        EXPECT_EQ(inference.orders_slabs(), ordered);
        StageInput below = inference.run_below();
        EXPECT_EQ(below.makes_own, features == 30 || (features == 60 && precision == Precision::kFloat32));
        EXPECT_EQ(collect(inference, below), run(model, {data.graph, data.features, aggregated}, 2, kPlenty));
      }
    fs::remove_all(folder_ / "store");
  }
}

// Clusters of some nodes, the others join them: every model has the bits of the nodes' own order.
TEST_F(InferenceTest, TheOrderOfTheRowsChangesNoBit) {
  const Store store = make_store(1500);
  const Dataset data = store.dataset();
  std::vector<NodeId> clustered;
  const std::vector<NodeId> offsets{0, 400, 400, 900};
  for (NodeId i = 0; i < 900; ++i) clustered.push_back((i * 7 + 3) % 1500);
  const InferenceOrder order(data.graph, clustered, offsets);
  std::vector<bool> seen(1500);
  for (NodeId row = 0; row < 1500; ++row) {
    seen[order.nodes()[row]] = true;
    ASSERT_EQ(order.rows()[order.nodes()[row]], row);
  }
  ASSERT_EQ(std::count(seen.begin(), seen.end(), true), 1500);

  const auto [usual, before, carrying] = make_options();
  ModelOptions wide, dense = usual;
  wide.hidden = 6;  // the last layer does not narrow
  dense.head = HeadKind::kDense;
  const FeatureMatrix aggregated = aggregated_features(store, usual.product_normalisation());
  const InferenceInput input{data.graph, data.features, aggregated};
  InferenceInput ordered = input;
  ordered.order = &order;
  const uint64_t graph = OrderedRows::bytes(data.graph, usual.layer_normalisation());
  int spilled_in_order = 0;
  for (ModelOptions options : {usual, before, carrying, wide, dense})
    for (const Precision precision : kPrecisions) {
      options.precision = precision;
      for (const uint32_t layers : {1, 2, 3}) {
        options.layers = layers;
        const Model model = make_model(data, options);
        for (uint32_t layer = 1; layer <= layers; ++layer) {
          RowSample sample{{0, 3, kInferenceBlock - 1, kInferenceBlock, 700, 1499}, 0, {}},
              ordered_sample{sample.nodes, 0, {}};
          const SlabMatrix expected = Inference(model, input, kPlenty, false, layer).run(&sample);
          const uint64_t enough =
              layer % 2 == 0 ? kPlenty : Inference::whole_memory(model, input) - 1;  // without features
          const SlabMatrix found = Inference(model, ordered, enough, false, layer).run(&ordered_sample);
          const auto values = [](const SlabMatrix& m) {
            return std::vector<float>(m.matrix().data, m.matrix().data + m.rows() * m.columns());
          };
          if (kernels::rows_are_independent()) {
            EXPECT_EQ(values(found), values(expected)) << layers << " layers, layer " << layer;
            EXPECT_EQ(ordered_sample.values, sample.values);
          }
          // Spilled: slabs of 16 columns, brought into the order one after another, in a room of two.
          set_thread_count(layer == 2 ? 3 : 1);
          const uint64_t little = Inference::least_memory(model, 1500) + graph + 2 * 16 * 1500 * sizeof(float);
          const Inference spilled(model, ordered, little, false, layer);
          ordered_sample = {sample.nodes, 0, {}};
          const SlabMatrix from_file = spilled.run(&ordered_sample);
          std::vector<float> scratch(from_file.rows() * from_file.columns());
          const float* rows = from_file.read_rows({0, 1500}, scratch.data()).data;
          EXPECT_EQ(std::vector<float>(rows, rows + scratch.size()), values(expected))
              << layers << " spilled " << layer;
          EXPECT_EQ(ordered_sample.values, sample.values);
          spilled_in_order += spilled.spills() && spilled.orders_slabs();
        }
      }
    }
  EXPECT_GT(spilled_in_order, 10);
}

// The order takes memory: with all but room for a copy of the edges and two slabs it is of no use.
TEST_F(InferenceTest, AnOrderIsTakenWhereMemoryHasRoomForIt) {
  const Store store = make_store(1500);
  const Dataset data = store.dataset();
  ModelOptions options;
  options.hidden = 256;
  const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
  const InferenceInput input{data.graph, data.features, aggregated};
  const Model model = make_model(data, options);
  const uint64_t column = 1500 * sizeof(float), fixed = Inference::least_memory(model, 1500) - column;
  const uint64_t slabs = fixed + OrderedRows::bytes(data.graph, options.layer_normalisation()) + 2 * 32 * column;
  EXPECT_TRUE(Inference::takes_order(model, input, slabs));
  EXPECT_FALSE(Inference::takes_order(model, input, slabs - 1)) << "more than eight slabs";
  EXPECT_TRUE(Inference::takes_order(model, input, kPlenty));

  // It is made for nothing nowhere.
  std::vector<NodeId> nodes(1500);
  for (NodeId v = 0; v < 1500; ++v) nodes[v] = v;
  const InferenceOrder order(data.graph, nodes, std::vector<NodeId>{0, 1500});
  InferenceInput ordered = input;
  ordered.order = &order;
  bool took = false;
  int changes = 0;
  for (uint64_t columns = 1; columns < 800; columns += 3) {
    const uint64_t memory = fixed + columns * column;
    const Inference inference(model, ordered, memory, false);
    const bool takes = Inference::takes_order(model, input, memory);
    EXPECT_EQ(takes, inference.orders_slabs() || inference.orders_rows()) << columns;
    EXPECT_FALSE(inference.orders_slabs() && !inference.spills());
    changes += takes != took;
    took = takes;
  }
  EXPECT_EQ(changes, 3) << "slabs, none while the graph does not fit beside all rows, all rows";
}

// Nodes without a cluster go where most of their neighbours are, to the first of equals; without neighbours behind all.
TEST_F(InferenceTest, NodesJoinTheClusterOfMostNeighbours) {
  EdgeList edges;
  for (const auto& [u, v] :
       std::vector<std::pair<NodeId, NodeId>>{{0, 1}, {2, 3}, {4, 2}, {4, 3}, {4, 0}, {5, 1}, {6, 0}, {6, 2}})
    edges.add(u, v);
  const CsrGraph graph = build_graph(8, edges, {}, nullptr);
  const InferenceOrder order(graph, std::vector<NodeId>{1, 0, 3, 2}, std::vector<NodeId>{0, 2, 4});
  EXPECT_THAT(order.nodes(), testing::ElementsAre(0, 1, 5, 6, 2, 3, 4, 7));
}

// Scores and the temperature are those of logits that are kept, whatever the memory.
TEST_F(InferenceTest, LogitsThatAreNotKeptHaveTheSameScores) {
  const Store store = make_store(1500);
  const Dataset data = store.dataset();
  ModelOptions options;
  options.hidden = 6;
  const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
  const InferenceInput input{data.graph, data.features, aggregated};
  const Model model = make_model(data, options);
  ASSERT_FALSE(model.stages().back().narrows()) << "logits would take the place of the rows below";
  const OutputWork work{.fits_temperature = true};
  const Evaluation whole = evaluate_exactly(model, input, data, kPlenty, false, work);
  const Evaluation spilled = evaluate_exactly(model, input, data, least_evaluation_memory(model, data), false, work);
  EXPECT_FALSE(whole.spilled);
  EXPECT_TRUE(spilled.spilled);
  ASSERT_TRUE(whole.rule.temperature.has_value());
  EXPECT_EQ(spilled.rule.temperature, whole.rule.temperature);
  for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest}) {
    const Scores kept = whole.of(role).scores(), passing = spilled.of(role).scores();
    EXPECT_GT(kept.nodes, 0u);
    EXPECT_EQ(passing.nodes, kept.nodes);
    EXPECT_EQ(passing.loss, kept.loss);
    EXPECT_EQ(passing.micro_f1, kept.micro_f1);
  }
}

}  // namespace
}  // namespace cgcn
