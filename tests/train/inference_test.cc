// Exact evaluation: equal to the training path's forward pass on a batch that is the whole graph, for every kind of
// data and model; and the same bits in little memory and on any number of threads.
#include "train/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batch/cluster_batches.h"
#include "common/log.h"
#include "common/threads.h"
#include "generate/generate.h"
#include "random_dataset.h"
#include "support.h"
#include "train/evaluation.h"

namespace cgcn {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 30;

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

class InferenceTest : public testing::Test {
 protected:
  InferenceTest() { log::set_level(log::Level::kQuiet); }
  ~InferenceTest() override {
    set_thread_count(0);
    log::set_level(log::Level::kNormal);
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
    Model model = make_model(data, options);

    PartitionOptions partition;
    partition.parts = 1;
    partition.transductive = true;
    const ClusterLayout layout = ensure_partition(store, partition).layout;
    const ClusterBatches batches(
        layout, {.normalisation = options.layer_normalisation(), .aggregates_input = options.input_projection});
    model.reserve(batches.limits());
    const auto storage = batches.make_storage();
    batches.prepare(0, 0, *storage);
    const size_t classes = data.labels.num_classes();
    std::vector<float> expected(data.num_nodes() * classes);
    const FeatureMatrix batch_aggregated = aggregated_features(layout, options.product_normalisation());
    model.predict(storage->batch, {layout.data.features, batch_aggregated, layout.data.labels}, expected.data());

    const FeatureMatrix aggregated = aggregated_features(store, options.product_normalisation());
    const std::vector<float> logits = run(model, {data.graph, data.features, aggregated}, options.layers, kPlenty);
    for (NodeId row = 0; row < data.num_nodes(); ++row)
      for (size_t c = 0; c < classes; ++c) {
        const float value = expected[row * classes + c];
        ASSERT_NEAR(logits[layout.order[row] * classes + c], value, 2e-4 * (1 + std::abs(value))) << row;
      }
  }
}

TEST_F(InferenceTest, LittleMemoryAndThreadsChangeNoBit) {
  GenerateOptions generated;
  generated.nodes = 1500;
  generate_store(folder_ / "store", generated, StagedDirectory::Existing::kRefuse);
  const Store store(folder_ / "store");
  const Dataset data = store.dataset();
  ModelOptions usual, before, carrying;
  usual.hidden = before.hidden = carrying.hidden = 40;
  carrying.input_projection = carrying.batch_norm = true;
  carrying.initial_residual = 0.1f;
  carrying.jumping = Jumping::kConcat;
  before.norm_place = NormPlace::kBefore;
  before.input_projection = before.residual = true;
  const FeatureMatrix aggregated = aggregated_features(store, usual.product_normalisation());
  const InferenceInput input{data.graph, data.features, aggregated};
  for (const ModelOptions& options : {usual, before, carrying}) {
    const Model model = make_model(data, options);
    const uint64_t column = 1500 * sizeof(float);
    uint64_t widest = 0;
    for (const InferenceStage& stage : model.stages()) widest = std::max<uint64_t>(widest, stage.out());
    const uint64_t scratch = (options.input_projection ? 6 : 5) * widest * 256 * sizeof(float) + column;
    set_thread_count(1);
    for (uint32_t layer = 1; layer <= 3; ++layer) {
      bool spills = false;
      const std::vector<float> expected = run(model, input, layer, kPlenty, &spills);
      EXPECT_FALSE(spills);
      for (const uint64_t columns : {48, 16, 3}) {  // 48: room for all that the narrow last layer takes and gives
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

// Scores and the temperature are those of logits that are kept, whatever the memory.
TEST_F(InferenceTest, LogitsThatAreNotKeptHaveTheSameScores) {
  GenerateOptions generated;
  generated.nodes = 1500;
  generate_store(folder_ / "store", generated, StagedDirectory::Existing::kRefuse);
  const Store store(folder_ / "store");
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
