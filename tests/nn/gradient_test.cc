// Every gradient of every option against finite differences of a double-precision model, in either precision.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "common/random.h"
#include "nn/model.h"
#include "reference_model.h"
#include "small_problem.h"

namespace cgcn {
namespace {

using test::InputKind;
using test::ReferenceModel;
using test::SmallProblem;

struct Case {
  std::string name;
  ModelOptions options;
  InputKind input = InputKind::kDense32;
  bool rectangular = false, multi_label = false, input_adjacency = false, weighted = false;
  std::optional<RegressionLoss> regression = {};
};

Case make_case(std::string name, uint32_t layers, std::function<void(Case&)> change) {
  Case made{std::move(name), {}, InputKind::kDense32, false, false, false};
  made.options.layers = layers;
  made.options.hidden = 9;
  made.options.dropout = 0;
  change(made);
  return made;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, uint32_t layers, std::function<void(Case&)> change) {
    cases.push_back(make_case(std::move(name), layers, std::move(change)));
  };
  const auto plain = [](Case& c) { c.options.convolution = ConvolutionForm::kPlain; };
  add("OneLayer", 1, [](Case&) {});
  add("Concat", 3, [](Case&) {});
  add("ConcatDropout", 3, [](Case& c) { c.options.dropout = 0.3f; });
  add("Plain", 3, plain);
  add("PlainDropout", 3, [&](Case& c) {
    plain(c);
    c.options.dropout = 0.3f;
  });
  add("NoLayerNorm", 3, [](Case& c) { c.options.layer_norm = false; });
  add("NoLayerNormBiasDropout", 3, [](Case& c) {
    c.options.layer_norm = false;
    c.options.bias = true;
    c.options.dropout = 0.2f;
  });
  add("Bias", 3, [](Case& c) { c.options.bias = true; });
  add("BiasPlain", 3, [&](Case& c) {
    plain(c);
    c.options.bias = true;
  });
  add("Residual", 4, [](Case& c) { c.options.residual = true; });
  add("ResidualDropout", 4, [](Case& c) {
    c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("ResidualPlainDropout", 4, [&](Case& c) {
    plain(c);
    c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("Rectangular", 4, [](Case& c) { c.rectangular = true; });
  add("RectangularDropoutResidual", 4, [](Case& c) {
    c.rectangular = true;
    c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("RectangularPlainResidual", 4, [&](Case& c) {
    plain(c);
    c.rectangular = true;
    c.options.residual = true;
  });
  add("RectangularPlainResidualDropout", 4, [&](Case& c) {
    plain(c);
    c.rectangular = true;
    c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("MultiLabel", 3, [](Case& c) {
    c.multi_label = true;
    c.options.dropout = 0.2f;
  });
  add("MultiLabelProjected", 3, [](Case& c) { c.multi_label = true; });
  add("Half", 2, [](Case& c) {
    c.input = InputKind::kDense16;
    c.options.dropout = 0.2f;
  });
  add("Sparse", 3, [](Case& c) { c.input = InputKind::kSparse; });
  add("SparseDropoutBias", 3, [](Case& c) {
    c.input = InputKind::kSparse;
    c.options.dropout = 0.4f;
    c.options.bias = true;
  });
  add("SparsePlainDropout", 2, [&](Case& c) {
    plain(c);
    c.input = InputKind::kSparse;
    c.options.dropout = 0.4f;
  });
  add("Identity", 3, [](Case& c) { c.input = InputKind::kIdentity; });
  add("IdentityDropout", 2, [](Case& c) {
    c.input = InputKind::kIdentity;
    c.options.dropout = 0.2f;
  });
  const auto before = [](Case& c) {
    c.options.dropout_place = DropoutPlace::kBefore;
    c.options.dropout = 0.3f;
  };
  add("DropoutBefore", 3, before);
  add("DropoutBeforePlainResidual", 4, [&](Case& c) {
    plain(c);
    before(c);
    c.options.residual = true;
  });
  add("DropoutBeforeRectangular", 4, [&](Case& c) {
    before(c);
    c.rectangular = true;
  });
  add("InputAdjacency", 3, [](Case& c) {
    c.input_adjacency = true;
    c.rectangular = true;
  });
  add("InputAdjacencyHalf", 2, [](Case& c) {
    c.input_adjacency = true;
    c.input = InputKind::kDense16;
  });
  add("InputAdjacencyDropout", 2, [](Case& c) {
    c.input_adjacency = true;
    c.options.dropout = 0.2f;
  });
  add("InputAdjacencyDropoutBefore", 2, [&](Case& c) {
    before(c);
    c.input_adjacency = true;
    c.options.bias = true;
  });
  add("InputAdjacencySparse", 3, [](Case& c) {
    c.input_adjacency = c.rectangular = c.options.bias = true;
    c.input = InputKind::kSparse;
  });
  add("InputAdjacencySparseDropoutBefore", 2, [&](Case& c) {
    before(c);
    c.input_adjacency = true;
    c.input = InputKind::kSparse;
  });
  add("InputAdjacencySparsePlainDropoutBefore", 2, [&](Case& c) {  // Kipf and Welling's
    plain(c);
    before(c);
    c.input_adjacency = true;
    c.options.layer_norm = false;
    c.input = InputKind::kSparse;
  });
  add("InputAdjacencyIdentity", 2, [](Case& c) {
    c.input_adjacency = true;
    c.input = InputKind::kIdentity;
  });
  add("DenseHead", 3, [](Case& c) {
    c.options.head = HeadKind::kDense;
    c.rectangular = true;
  });
  add("DenseHeadOneLayerMultiLabel", 1, [](Case& c) {
    c.options.head = HeadKind::kDense;
    c.multi_label = true;
  });
  add("DenseHeadDropoutInputAdjacency", 2, [](Case& c) {
    c.options.head = HeadKind::kDense;
    c.options.dropout = 0.2f;
    c.input_adjacency = true;
  });
  const auto norm_before = [](Case& c) { c.options.norm_place = NormPlace::kBefore; };
  add("NormBefore", 3, norm_before);
  add("NormBeforeResidualDropout", 4, [&](Case& c) {
    norm_before(c);
    c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("NormBeforePlainResidualRectangular", 4, [&](Case& c) {
    plain(c);
    norm_before(c);
    c.options.residual = c.options.bias = c.rectangular = true;
  });
  add("NormBeforeDropoutBeforeResidual", 4, [&](Case& c) {
    norm_before(c);
    before(c);
    c.options.residual = true;
  });
  add("NormBeforeWithoutLayerNormDenseHead", 3, [&](Case& c) {
    norm_before(c);
    c.options.layer_norm = false;
    c.options.head = HeadKind::kDense;
    c.options.dropout = 0.2f;
  });
  add("NormBeforeSparse", 3, [&](Case& c) {
    norm_before(c);
    c.input = InputKind::kSparse;
    c.options.bias = c.options.residual = true;
  });
  add("NormBeforeOneLayer", 1, norm_before);
  const auto projection = [](Case& c) { c.options.input_projection = c.input_adjacency = true; };
  add("Projection", 3, projection);
  add("ProjectionBiasDropoutResidual", 3, [&](Case& c) {
    projection(c);
    c.options.bias = c.options.residual = c.rectangular = true;
    c.options.dropout = 0.2f;
  });
  add("ProjectionOneLayerPlain", 1, [&](Case& c) {
    plain(c);
    projection(c);
  });
  add("ProjectionHalfDropoutBefore", 2, [&](Case& c) {
    projection(c);
    before(c);
    c.input = InputKind::kDense16;
  });
  add("ProjectionSparseDropout", 2, [&](Case& c) {
    projection(c);
    c.input = InputKind::kSparse;
    c.options.dropout = 0.3f;
    c.options.bias = true;
  });
  add("ProjectionIdentityMultiLabel", 2, [&](Case& c) {
    projection(c);
    c.input = InputKind::kIdentity;
    c.multi_label = true;
  });
  add("ProjectionNormBeforeResidual", 3, [&](Case& c) {
    projection(c);
    norm_before(c);
    c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("ProjectionNormBeforeSparse", 2, [&](Case& c) {
    projection(c);
    norm_before(c);
    c.input = InputKind::kSparse;
  });
  add("ClassWeights", 2, [](Case& c) { c.weighted = true; });
  add("ClassWeightsMultiLabel", 2, [](Case& c) {
    c.weighted = true;
    c.multi_label = true;
  });
  add("SquaredError", 2, [](Case& c) { c.regression = RegressionLoss::kSquared; });
  add("AbsoluteError", 3, [](Case& c) {
    c.regression = RegressionLoss::kAbsolute;
    c.options.head = HeadKind::kDense;
  });
  const auto batch_norm = [](Case& c) { c.options.batch_norm = true; };
  add("BatchNorm", 3, batch_norm);
  add("BatchNormDropoutResidualRectangular", 4, [&](Case& c) {
    batch_norm(c);
    c.options.residual = c.rectangular = true;
    c.options.dropout = 0.2f;
  });
  add("BatchNormBeforeSparseProjection", 3, [&](Case& c) {
    batch_norm(c);
    norm_before(c);
    projection(c);
    c.input = InputKind::kSparse;
    c.options.residual = true;
  });
  add("InputDropout", 3, [](Case& c) {
    c.options.dropout = 0.2f;
    c.options.input_dropout = 0.5f;
  });
  add("InputDropoutAlone", 2, [](Case& c) {
    c.options.input_dropout = 0.4f;
    c.input = InputKind::kSparse;
  });
  add("NoInputDropoutProjection", 2, [&](Case& c) {
    projection(c);
    c.options.dropout = 0.3f;
    c.options.input_dropout = 0;
    c.input = InputKind::kSparse;
  });
  add("InputDropoutInputAdjacency", 2, [&](Case& c) {
    before(c);
    c.input_adjacency = true;
    c.options.input_dropout = 0.5f;
  });
  const auto linear = [](Case& c) { c.options.head = HeadKind::kLinear; };
  add("LinearHead", 2, linear);
  add("LinearHeadOneLayerDropout", 1, [&](Case& c) {
    linear(c);
    c.options.dropout = 0.3f;
  });
  add("LinearHeadResidualRectangular", 3, [&](Case& c) {
    linear(c);
    c.options.residual = c.rectangular = c.options.bias = true;
  });
  add("JumpingConcat", 3, [](Case& c) { c.options.jumping = Jumping::kConcat; });
  add("JumpingConcatDropoutRectangularProjection", 3, [&](Case& c) {
    projection(c);
    c.options.jumping = Jumping::kConcat;
    c.options.residual = c.rectangular = true;
    c.options.dropout = 0.3f;
  });
  add("JumpingMax", 3, [](Case& c) { c.options.jumping = Jumping::kMax; });
  add("JumpingMaxBatchNormDropoutRectangularSparse", 4, [&](Case& c) {
    batch_norm(c);
    c.options.jumping = Jumping::kMax;
    c.rectangular = true;
    c.options.dropout = 0.3f;
    c.input = InputKind::kSparse;
  });
  const auto gcnii = [&](Case& c) {
    plain(c);
    projection(c);
    c.options.layer_norm = false;
    c.options.initial_residual = 0.2f;
    c.options.identity_mapping = 0.7f;
  };
  add("GcniiLinearHead", 4, [&](Case& c) {
    gcnii(c);
    linear(c);
  });
  add("GcniiDropoutSparseBias", 3, [&](Case& c) {
    gcnii(c);
    linear(c);
    c.input = InputKind::kSparse;
    c.options.bias = true;
    c.options.dropout = 0.3f;
  });
  add("GcniiConcatNormResidualRectangular", 3, [&](Case& c) {
    gcnii(c);
    c.options.convolution = ConvolutionForm::kConcat;
    c.options.layer_norm = c.options.residual = c.rectangular = true;
    c.options.jumping = Jumping::kConcat;
  });
  add("GcniiNormBeforeResidual", 4, [&](Case& c) {
    gcnii(c);
    norm_before(c);
    c.options.layer_norm = c.options.residual = true;
    c.options.dropout = 0.2f;
  });
  add("IdentityMappingWithoutInitialResidual", 3, [&](Case& c) {
    plain(c);
    c.options.identity_mapping = 0.5f;
  });
  add("WideLastLayer", 3, [](Case& c) { c.options.hidden = 3; });  // more classes than hidden columns
  return cases;
}

// How far the gradient of a parameter is off, as shares: at the worst place of the largest, and all places together.
struct Difference {
  std::string name;
  double worst, distance;
};

// Of a large matrix. A sanitizer sees all of the model's code in the one step whose gradients these are.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kComparedPlaces = 20;
#else
constexpr uint64_t kComparedPlaces = 100;
#endif

std::vector<Difference> compare_gradients(const Case& c, uint64_t seed, double loss_tolerance) {
  SmallProblem problem(c.input, c.options.layers, c.rectangular, c.multi_label, seed);
  if (c.input_adjacency) problem.aggregate_input(seed);
  if (c.regression) {
    std::vector<float> values;
    for (uint32_t v = 0; v < SmallProblem::kNodes; ++v) values.push_back(50 + 3 * std::sin(static_cast<float>(v)));
    problem.labels = Labels::numbers(std::move(values));
  }
  const ModelShape shape{problem.x.columns(), problem.sparse(), problem.labels.num_classes(), c.multi_label,
                         c.regression.has_value()};
  Model model(c.options, shape, 11);
  const std::vector<float> class_weights = c.weighted ? std::vector<float>{0.5f, 3, 0, 1, 1.75f} : std::vector<float>();
  if (c.weighted) model.weigh_classes(class_weights);
  const TargetScaling target{49, 2.5};
  if (c.regression) model.set_regression(*c.regression, target);
  Random random(5, Purpose::kTest, 9);
  for (const Parameter& p : model.parameters())  // biases and norms away from their neutral starting values
    if (p.rows == 1 && p.is_learnt())
      for (uint64_t i = 0; i < p.size(); ++i) model.values()[p.offset + i] += 0.3f * random.normal();
  model.reserve({SmallProblem::kNodes, 1000});
  const ModelInput input{problem.x, problem.aggregated, problem.labels};
  constexpr uint64_t kSeed = 77;
  const StepResult result = model.compute_gradients(problem.batch, input, kSeed);

  ReferenceModel reference(model, input);
  reference.class_weights = class_weights;
  reference.target = target;
  if (c.regression) reference.regression = *c.regression;
  EXPECT_NEAR(result.loss, reference.loss(problem.batch, kSeed, c.options.dropout), loss_tolerance);
  EXPECT_EQ(result.labelled, problem.loss_rows.size());
  std::vector<Difference> differences;
  for (const Parameter& p : model.parameters()) {
    if (!p.is_learnt()) continue;
    auto& values = reference.weights[p.name];
    double largest = 0, worst = 0, squares = 0, square_errors = 0;
    const uint64_t stride = p.size() / kComparedPlaces + 1;
    for (uint64_t i = 0; i < p.size(); i += stride) {
      constexpr double kStep = 1e-6;
      const double kept = values[i];
      values[i] = kept + kStep;
      const double above = reference.loss(problem.batch, kSeed, c.options.dropout);
      values[i] = kept - kStep;
      const double below = reference.loss(problem.batch, kSeed, c.options.dropout);
      values[i] = kept;
      const double expected = (above - below) / (2 * kStep);
      largest = std::max(largest, std::abs(expected));
      const double error = std::abs(expected - model.gradients()[p.offset + i]);
      worst = std::max(worst, error);
      squares += expected * expected;
      square_errors += error * error;
    }
    EXPECT_GT(largest, 0) << p.name << " has no gradient to compare";
    constexpr double kNoise = 1e-7;  // of the differences
    differences.push_back({p.name, std::max(0.0, worst - kNoise) / largest, std::sqrt(square_errors / squares)});
  }
  return differences;
}

class Gradient : public testing::TestWithParam<Case> {};

TEST_P(Gradient, EqualsFiniteDifferences) {
  for (const Difference& d : compare_gradients(GetParam(), 3, 2e-6)) EXPECT_LT(d.worst, 2e-5) << d.name;
}

// Numbers are rounded to eight bits, a few times one after another. That puts a ReLU on its other side now and then,
// which tells in so small a problem: of four problems the best counts, as a wrong formula is wrong in all.
TEST_P(Gradient, InBFloat16IsNearFiniteDifferences) {
  Case c = GetParam();
  c.options.precision = kernels::Precision::kBFloat16;
  std::vector<Difference> best = compare_gradients(c, 3, 0.02);
  for (const uint64_t seed : {4, 5, 6}) {
    const std::vector<Difference> other = compare_gradients(c, seed, 0.02);
    for (size_t i = 0; i < best.size(); ++i) best[i].distance = std::min(best[i].distance, other[i].distance);
  }
  for (const Difference& d : best) EXPECT_LT(d.distance, 0.05) << d.name;
}

INSTANTIATE_TEST_SUITE_P(Model, Gradient, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cgcn
