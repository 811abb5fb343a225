// The model as its users see it: the same bits for any number of threads, exact inference equal to the forward pass,
// rows that a sparse batch touches, the optimiser.
#include "nn/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "common/threads.h"
#include "kernels/bfloat16_gemm.h"
#include "nn/adam.h"
#include "nn/optimiser.h"
#include "small_problem.h"

namespace cgcn {
namespace {

using test::InputKind;
using test::SmallProblem;

ModelOptions small_options(uint32_t layers = 3) {
  ModelOptions options;
  options.layers = layers;
  options.hidden = 9;
  return options;
}

ModelShape shape_of(const SmallProblem& problem, bool multi_label = false) {
  return {problem.x.columns(), problem.sparse(), SmallProblem::kClasses, multi_label};
}

// A problem that is large enough for several tiles, strips and blocks of rows.
struct WideProblem {
  static constexpr uint32_t kRows = 1300;
  test::OwnedAdjacency owned{kRows, kRows, 0.005, 8};
  Adjacency adjacency = owned.adjacency();
  FeatureMatrix x, aggregated;
  Labels labels;
  std::vector<NodeId> inputs;
  std::vector<uint32_t> loss_rows;
  Batch batch;

  WideProblem() {
    Random random(1, Purpose::kTest);
    std::vector<float> values(kRows * 70), sums(kRows * 70);
    for (float& value : values) value = random.normal();
    for (float& value : sums) value = random.normal();
    x = FeatureMatrix::dense(std::move(values), 70);
    aggregated = FeatureMatrix::dense(std::move(sums), 70);
    std::vector<int32_t> classes(kRows);
    for (int32_t& label : classes) label = static_cast<int32_t>(random.below(11));
    labels = Labels::single(std::move(classes), 11);
    for (uint32_t r = 0; r < kRows; ++r) {
      inputs.push_back(kRows - 1 - r);
      if (r % 4 != 0) loss_rows.push_back(r);
    }
    batch.inputs = inputs;
    batch.adjacencies = {&adjacency, 1};
    batch.loss_rows = loss_rows;
    batch.num_outputs = kRows;
  }
};

std::vector<float> train(const WideProblem& problem, float dropout, int threads,
                         kernels::Precision precision = kernels::Precision::kFloat32) {
  const ThreadCountScope set(threads);
  ModelOptions options = small_options(4);
  options.hidden = 300;
  options.bias = options.residual = true;
  options.dropout = dropout;
  options.precision = precision;
  Model model(options, {70, false, 11, false}, 3);
  model.reserve({WideProblem::kRows, 0});
  Adam adam({}, model);
  for (int step = 0; step < 3; ++step) {
    model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
    adam.step(model, 0.01f, static_cast<float>(1 / std::max(1.0, gradient_norm(model))));
  }
  return {model.values().begin(), model.values().end()};
}

TEST(Model, TrainsToTheSameBitsForAnyNumberOfThreads) {
  const WideProblem problem;
  for (const float dropout : {0.2f, 0.0f}) {
    const std::vector<float> one = train(problem, dropout, 1);
    for (const int threads : {2, 3}) {
      const std::vector<float> many = train(problem, dropout, threads);
      EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << threads << " threads";
    }
  }
}

TEST(Model, TrainsInBFloat16ToTheSameBitsForAnyNumberOfThreads) {
  const WideProblem problem;
  const std::vector<float> one = train(problem, 0.2f, 1, kernels::Precision::kBFloat16);
  for (const int threads : {2, 3}) {
    const std::vector<float> many = train(problem, 0.2f, threads, kernels::Precision::kBFloat16);
    EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << threads << " threads";
  }
  // Near what float32 trains to, and not the same.
  const std::vector<float> exact = train(problem, 0.2f, 1);
  double squares = 0, errors = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    squares += exact[i] * exact[i];
    errors += (exact[i] - one[i]) * (exact[i] - one[i]);
  }
  EXPECT_LT(std::sqrt(errors / squares), 0.05);
  EXPECT_GT(std::sqrt(errors / squares), 1e-5);
}

// Rows, C, dC and the scratch are half as large; z and the logits are not.
TEST(Model, BFloat16TakesLessWorkspace) {
  const ThreadCountScope one(1);
  const auto bytes = [](kernels::Precision precision) {
    ModelOptions options = small_options(4);
    options.hidden = 512;
    options.precision = precision;
    Model model = Model::planned(options, {100, false, 40, false});
    model.reserve({20000, 0});
    return static_cast<double>(model.workspace_bytes());
  };
  const double share = bytes(kernels::Precision::kBFloat16) / bytes(kernels::Precision::kFloat32);
  EXPECT_LT(share, 0.68);
  EXPECT_GT(share, 0.5);
}

// What threads keep for products is part of the plan, also of a model that is only planned.
TEST(Model, BFloat16CountsTheScratchOfThreads) {
  const auto bytes = [](kernels::Precision precision, int threads) {
    const ThreadCountScope scope(threads);
    ModelOptions options = small_options(2);
    options.precision = precision;
    Model model = Model::planned(options, {100, false, 40, false});
    model.reserve({5000, 0});
    return model.workspace_bytes();
  };
  using kernels::Precision;
  EXPECT_EQ(bytes(Precision::kFloat32, 3), bytes(Precision::kFloat32, 1));
  EXPECT_EQ(bytes(Precision::kBFloat16, 3) - bytes(Precision::kBFloat16, 1), 2 * kernels::product_scratch_bytes(5000));
}

TEST(Model, SparseInputTrainsToTheSameBitsForAnyNumberOfThreads) {
  const SmallProblem problem(InputKind::kSparse, 3, false, false, 3, 40, 300);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    const ThreadCountScope set(threads);
    Model model(small_options(), shape_of(problem), 3);
    model.reserve({SmallProblem::kNodes, 0});
    Adam adam({}, model);
    for (int step = 0; step < 3; ++step) {
      model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
      adam.step(model, 0.01f);
    }
    results.emplace_back(model.values().begin(), model.values().end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// All nodes as one batch in their own order, so that the forward pass has what exact inference computes.
void expect_exact_inference(InputKind kind, const ModelOptions& options) {
  SmallProblem problem(kind, options.layers, false, false, 3, SmallProblem::kNodes);
  std::iota(problem.inputs.begin(), problem.inputs.end(), 0u);
  if (options.input_projection) problem.batch.input_adjacency = &problem.adjacencies[0];
  Model model(options, shape_of(problem), 3);
  for (const Parameter& p : model.parameters())
    if (p.rows == 1)
      for (uint64_t i = 0; i < p.size(); ++i) model.values()[p.offset + i] += 0.01f * static_cast<float>(i);
  model.reserve({SmallProblem::kNodes, 0});
  constexpr uint32_t n = SmallProblem::kNodes;
  std::vector<float> expected(n * SmallProblem::kClasses);
  model.predict(problem.batch, {problem.x, problem.aggregated, problem.labels}, expected.data());

  const SparseView& a = problem.adjacencies[0].forward;
  std::vector<float> h;
  for (const InferenceStage& stage : model.stages()) {
    const bool own_messages = stage.messages() == Messages::kOwn;
    const size_t width = own_messages ? stage.message_columns() : stage.in();
    std::vector<float> messages = own_messages ? std::vector<float>(n * width) : h;
    const size_t own_width = stage.narrows() ? stage.kept_columns() : stage.in();
    std::vector<float> kept(stage.narrows() ? n * own_width : 0);
    if (own_messages)
      stage.message({h.data(), n, stage.in()}, {messages.data(), n, width}, {kept.data(), n, own_width});
    if (stage.narrows()) h = std::move(kept);
    std::vector<float> aggregated(messages.empty() ? 0 : n * width), next(n * stage.out());
    for (uint32_t r = 0; r < n && !messages.empty(); ++r)
      for (uint64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i)
        for (size_t c = 0; c < width; ++c)
          aggregated[r * width + c] += a.values[i] * messages[a.column_indices[i] * width + c];
    for (NodeId begin = 0; begin < n; begin += 17) {  // in blocks of odd size
      const NodeId end = std::min(n, begin + 17);
      InferenceRows rows{problem.x, problem.aggregated, begin, end};
      if (!messages.empty()) {
        rows.own = kernels::ConstMatrix(h.data(), n, own_width).rows_from(begin, end);
        rows.aggregated = kernels::ConstMatrix(aggregated.data(), n, width).rows_from(begin, end);
      }
      stage.infer(rows, kernels::Matrix(next.data(), n, stage.out()).rows_from(begin, end));
    }
    h = std::move(next);
  }
  ASSERT_EQ(h.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(h[i], expected[i], 2e-5);
}

TEST(Model, InfersLayerByLayerWhatForwardComputes) {
  for (const auto kind : {InputKind::kDense32, InputKind::kDense16, InputKind::kSparse, InputKind::kIdentity})
    for (const auto convolution : {ConvolutionForm::kConcat, ConvolutionForm::kPlain})
      for (const bool bias : {false, true}) {
        ModelOptions options = small_options(4);
        options.convolution = convolution;
        options.bias = bias;
        options.residual = bias;
        expect_exact_inference(kind, options);
        options.norm_place = NormPlace::kBefore;
        expect_exact_inference(kind, options);
        options.input_projection = true;
        expect_exact_inference(kind, options);
        options.norm_place = NormPlace::kAfter;
        options.head = HeadKind::kDense;
        expect_exact_inference(kind, options);
      }
}

TEST(Model, InfersWhatGoesPastLayers) {
  for (const auto kind : {InputKind::kDense32, InputKind::kSparse})
    for (const auto jumping : {Jumping::kNone, Jumping::kConcat, Jumping::kMax})
      for (const uint32_t layers : {1u, 2u, 4u}) {
        ModelOptions options = small_options(layers);
        options.head = HeadKind::kLinear;
        options.jumping = jumping;
        expect_exact_inference(kind, options);
        options.batch_norm = options.residual = true;
        options.input_projection = layers == 4;
        expect_exact_inference(kind, options);
        options.input_projection = true;
        options.initial_residual = 0.2f;
        options.identity_mapping = 0.6f;
        expect_exact_inference(kind, options);
        options.convolution = ConvolutionForm::kPlain;
        options.batch_norm = options.layer_norm = false;
        expect_exact_inference(kind, options);
      }
}

// Batches of one step: the running statistics move once, towards the mean of what the batches measured.
TEST(Model, RunningStatisticsMoveTowardsThoseOfTheBatches) {
  const SmallProblem problem(InputKind::kDense32, 2, false, false);
  ModelOptions options = small_options(2);
  options.batch_norm = true;
  Model model(options, shape_of(problem), 1);
  model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
  uint32_t statistics = 0;
  for (const Parameter& p : model.parameters()) {
    if (p.is_learnt()) continue;
    ++statistics;
    const float before = model.values()[p.offset], measured = model.gradients()[p.offset];
    EXPECT_EQ(before, p.name.ends_with("variance") ? 1.0f : 0.0f);
    EXPECT_NE(measured, 0.0f);
  }
  ASSERT_EQ(statistics, 2u);
  const std::vector<float> before(model.values().begin(), model.values().end());
  model.move_statistics(2);
  for (const Parameter& p : model.parameters())
    for (uint64_t i = p.offset; i < p.offset + p.size(); ++i) {
      const float moved = 0.9f * before[i] + 0.05f * model.gradients()[i];
      EXPECT_NEAR(model.values()[i], p.is_learnt() ? before[i] : moved, 1e-6) << p.name;
    }
}

// The optimiser leaves them alone, weight decay included.
TEST(Model, TheOptimiserLeavesStatisticsAlone) {
  const SmallProblem problem(InputKind::kDense32, 2, false, false);
  ModelOptions options = small_options(2);
  options.batch_norm = true;
  Model model(options, shape_of(problem), 1);
  OptimiserOptions decaying;
  decaying.weight_decay = 0.1f;
  const auto optimiser = make_optimiser(decaying, model);
  const std::vector<float> before(model.values().begin(), model.values().end());
  model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
  optimiser->step(model, 0.1f);
  for (const Parameter& p : model.parameters())
    if (p.is_learnt())
      EXPECT_NE(model.values()[p.offset], before[p.offset]) << p.name;
    else
      EXPECT_EQ(model.values()[p.offset], before[p.offset]) << p.name;
}

TEST(Model, ProjectsFirstOnlyWhereItIsNarrower) {
  const SmallProblem problem(InputKind::kDense32, 3, false, false);
  const Model model(small_options(), shape_of(problem), 1);
  const auto stages = model.stages();
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].messages(), Messages::kNone);
  EXPECT_EQ(stages[1].messages(), Messages::kInput);  // 9 → 9
  EXPECT_EQ(stages[2].messages(), Messages::kOwn);    // 9 → 5
  EXPECT_EQ(stages[2].message_columns(), 5u);
}

TEST(Model, GradientOfASparseInputIsZeroButInTouchedRows) {
  SmallProblem first(InputKind::kIdentity, 2, false, false, 3), second(InputKind::kIdentity, 2, false, false, 4, 5);
  Model model(small_options(2), shape_of(first), 1);
  model.reserve({SmallProblem::kNodes, 0});
  for (SmallProblem* problem : {&first, &second}) {
    model.compute_gradients(problem->batch, {problem->x, problem->aggregated, problem->labels}, 5);
    const TouchedRows touched = model.touched_rows(0);
    EXPECT_FALSE(touched.all);
    EXPECT_TRUE(std::is_sorted(touched.rows.begin(), touched.rows.end()));
    EXPECT_TRUE(model.touched_rows(1).all);
    const Parameter& p = model.parameters()[0];
    uint32_t used = 0;
    for (uint32_t r = 0; r < p.rows; ++r) {
      const bool is_touched = std::binary_search(touched.rows.begin(), touched.rows.end(), r);
      used += is_touched;
      for (uint32_t c = 0; c < p.columns && !is_touched; ++c)
        ASSERT_EQ(model.gradients()[p.offset + uint64_t{r} * p.columns + c], 0);
    }
    EXPECT_GT(used, 0u);
    EXPECT_LT(used, p.rows);
  }
}

TEST(Adam, MovesOnlyTouchedRowsUnlessDense) {
  const SmallProblem problem(InputKind::kIdentity, 2, false, false);
  for (const bool dense : {false, true}) {
    Model model(small_options(2), shape_of(problem), 1);
    model.reserve({SmallProblem::kNodes, 0});
    const Parameter& p = model.parameters()[0];
    OptimiserOptions options;
    options.dense = dense;
    options.weight_decay = 0.1f;  // so that a dense step moves every row
    Adam adam(options, model);
    const std::vector<float> before(model.values().begin(), model.values().end());
    model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
    adam.step(model, 0.01f);
    const auto rows = model.touched_rows(0).rows;
    for (uint32_t r = 0; r < p.rows; ++r) {
      const uint64_t at = p.offset + uint64_t{r} * p.columns;
      const bool moved = model.values()[at] != before[at];
      EXPECT_EQ(moved, dense || std::binary_search(rows.begin(), rows.end(), r)) << r;
    }
  }
}

TEST(AdamW, TakesTheDecayOffTheWeightsAndNotIntoTheMoments) {
  const SmallProblem problem(InputKind::kDense32, 2, false, false);
  OptimiserOptions plain, decaying;
  plain.kind = decaying.kind = OptimiserKind::kAdamW;
  decaying.weight_decay = 0.1f;
  std::vector<std::vector<float>> values, moments;
  std::vector<float> start;
  for (const OptimiserOptions& options : {plain, decaying}) {
    Model model(small_options(2), shape_of(problem), 1);
    start.assign(model.values().begin(), model.values().end());
    const auto optimiser = make_optimiser(options, model);
    model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
    optimiser->step(model, 0.01f);
    values.emplace_back(model.values().begin(), model.values().end());
    const auto state = optimiser->state();
    ASSERT_EQ(state.size(), 2u);
    EXPECT_EQ(state[0].name, "mean");
    EXPECT_EQ(state[1].name, "square");
    moments.emplace_back(state[0].values.begin(), state[0].values.end());
  }
  EXPECT_EQ(moments[0], moments[1]);
  double decayed = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    EXPECT_NEAR(values[1][i], values[0][i] - 0.01 * 0.1 * start[i], 1e-7);
    decayed += std::abs(values[1][i] - values[0][i]);
  }
  EXPECT_GT(decayed, 0.01);
}

TEST(Adam, FirstLayersDecayIsThatOfTheLayerThatTakesTheFeatures) {
  SmallProblem problem(InputKind::kDense32, 2, false, false);
  problem.aggregate_input();
  for (const bool projection : {false, true}) {
    ModelOptions model_options = small_options(2);
    model_options.input_projection = projection;
    OptimiserOptions options;
    options.kind = OptimiserKind::kAdamW;
    options.weight_decay = 1;
    options.decay_scope = DecayScope::kFirstLayer;
    Model model(model_options, shape_of(problem), 1);
    const std::vector<float> before(model.values().begin(), model.values().end());
    make_optimiser(options, model)->step(model, 0.5f);  // no gradient: only the decay moves anything
    for (const Parameter& p : model.parameters()) {
      if (p.rows == 1) continue;
      const bool first = p.name == (projection ? "projection.weight" : "layer1.weight");
      EXPECT_EQ(model.values()[p.offset] != before[p.offset], first) << p.name;
    }
  }
}

TEST(Adam, FirstStepHasTheLengthOfTheLearningRate) {
  const SmallProblem problem(InputKind::kDense32, 2, false, false);
  Model model(small_options(2), shape_of(problem), 1);
  model.reserve({SmallProblem::kNodes, 0});
  Adam adam({}, model);
  const std::vector<float> before(model.values().begin(), model.values().end());
  model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
  adam.step(model, 0.01f);
  const Parameter& p = model.parameters()[0];
  for (uint64_t i = p.offset; i < p.offset + p.size(); ++i)
    if (std::abs(model.gradients()[i]) > 1e-4) {
      EXPECT_NEAR(model.values()[i] - before[i], model.gradients()[i] > 0 ? -0.01f : 0.01f, 1e-5);
    }
  EXPECT_EQ(adam.steps(), 1u);
}

TEST(Adam, NamesTheParameterThatIsNotFinite) {
  const SmallProblem problem(InputKind::kDense32, 3, false, false);
  Model model(small_options(3), shape_of(problem), 1);
  model.reserve({SmallProblem::kNodes, 0});
  model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
  EXPECT_EQ(first_not_finite(model), "");
  double squares = 0;
  for (const float g : model.gradients()) squares += double{g} * g;
  EXPECT_NEAR(gradient_norm(model), std::sqrt(squares), 1e-5 * std::sqrt(squares));
  for (const Parameter& p : model.parameters()) {
    if (p.name != "layer2.norm.scale") continue;
    model.gradients()[p.offset + 3] = std::numeric_limits<float>::infinity();
  }
  EXPECT_EQ(first_not_finite(model), "layer2.norm.scale");
}

TEST(Model, ABatchWithoutLabelsHasNoLossAndNoGradient) {
  SmallProblem problem(InputKind::kDense32, 3, false, false);
  problem.batch.loss_rows = {};
  Model model(small_options(3), shape_of(problem), 1);
  model.reserve({SmallProblem::kNodes, 0});
  const StepResult result = model.compute_gradients(problem.batch, {problem.x, problem.aggregated, problem.labels}, 5);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.labelled, 0u);
  for (const float g : model.gradients()) EXPECT_EQ(g, 0);
}

TEST(Model, GlorotUsesTheConcatenatedFanIn) {
  ModelOptions options = small_options(2);
  options.hidden = 200;
  const Model model(options, {100, false, 5, false}, 1);
  const Parameter& p = model.parameters()[0];
  ASSERT_EQ(p.rows, 200u);
  const float limit = std::sqrt(6.0f / (200 + 200));
  float largest = 0;
  double squares = 0;
  for (uint64_t i = 0; i < p.size(); ++i) {
    largest = std::max(largest, std::abs(model.values()[p.offset + i]));
    squares += double{model.values()[p.offset + i]} * model.values()[p.offset + i];
  }
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.99f * limit);
  EXPECT_NEAR(squares / static_cast<double>(p.size()), limit * limit / 3, 0.02 * limit * limit / 3);
}

}  // namespace
}  // namespace cgcn
