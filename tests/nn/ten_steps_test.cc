// Ten training steps against an independent implementation: tests/nn/reference/ten_steps.py makes the recorded values.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "nn/adam.h"
#include "nn/model.h"

namespace cgcn {
namespace {

constexpr uint32_t kNodes = 30, kFeatures = 6, kClasses = 4, kHidden = 8, kBatches = 2;

// The script's integer hash.
double uniform(uint64_t stream, uint64_t i) {
  auto x = static_cast<uint32_t>((stream * 1000003 + i) * 2654435761u);
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  x *= 3266489917u;
  x ^= x >> 16;
  return x / 4294967296.0;
}

std::vector<float> matrix(uint64_t stream, size_t size, double scale, double shift = 0) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(shift + scale * (uniform(stream, i) - 0.5));
  return values;
}

double link(uint32_t u, uint32_t v) {
  if (u == v || uniform(1, u * kNodes + v) >= 0.2) return 0;
  return 0.5 + uniform(2, u * kNodes + v);
}

// The edges among `nodes`, every row divided by its sum; and the transpose.
struct MeanAdjacency {
  std::vector<uint64_t> offsets{0}, transposed_offsets{0};
  std::vector<uint32_t> columns, transposed_columns;
  std::vector<float> values, transposed_values;
  Adjacency adjacency;

  explicit MeanAdjacency(const std::vector<NodeId>& nodes) {
    const auto n = static_cast<uint32_t>(nodes.size());
    std::vector<double> degrees(n);
    for (uint32_t u = 0; u < n; ++u)
      for (uint32_t v = 0; v < n; ++v) degrees[u] += link(nodes[u], nodes[v]);
    for (uint32_t u = 0; u < n; ++u) {
      for (uint32_t v = 0; v < n; ++v) {
        if (link(nodes[u], nodes[v]) > 0) {
          columns.push_back(v);
          values.push_back(static_cast<float>(link(nodes[u], nodes[v]) / degrees[u]));
        }
        if (link(nodes[v], nodes[u]) > 0) {
          transposed_columns.push_back(v);
          transposed_values.push_back(static_cast<float>(link(nodes[v], nodes[u]) / degrees[v]));
        }
      }
      offsets.push_back(columns.size());
      transposed_offsets.push_back(transposed_columns.size());
    }
    adjacency = {{n, n, offsets.data(), columns.data(), values.data()},
                 {n, n, transposed_offsets.data(), transposed_columns.data(), transposed_values.data()}};
  }
};

struct Data {
  FeatureMatrix x, aggregated;
  Labels classes, bits;

  Data() {
    const std::vector<float> values = matrix(3, kNodes * kFeatures, 2.0);
    std::vector<float> sums(kNodes * kFeatures);
    std::vector<int32_t> labels(kNodes);
    std::vector<uint8_t> packed(kNodes);
    for (uint32_t u = 0; u < kNodes; ++u) {
      double degree = 0;
      std::vector<double> row(kFeatures);
      for (uint32_t v = 0; v < kNodes; ++v) {
        degree += link(u, v);
        for (uint32_t c = 0; c < kFeatures; ++c) row[c] += link(u, v) * values[v * kFeatures + c];
      }
      for (uint32_t c = 0; c < kFeatures; ++c)
        sums[u * kFeatures + c] = degree > 0 ? static_cast<float>(row[c] / degree) : 0;
      labels[u] = static_cast<int32_t>(uniform(4, u) * kClasses);
      for (uint32_t c = 0; c < kClasses; ++c)
        if (uniform(5, u * kClasses + c) < 0.4) packed[u] |= static_cast<uint8_t>(1u << c);
    }
    x = FeatureMatrix::dense(values, kFeatures);
    aggregated = FeatureMatrix::dense(sums, kFeatures);
    classes = Labels::single(labels, kClasses);
    bits = Labels::multi(packed, kClasses);
  }
};

Model make_model(const nlohmann::json& recorded) {
  ModelOptions options;
  options.layers = recorded.at("layers");
  options.hidden = kHidden;
  options.convolution = recorded.at("concat").get<bool>() ? ConvolutionForm::kConcat : ConvolutionForm::kPlain;
  options.layer_norm = recorded.at("norm");
  options.residual = recorded.at("residual");
  options.bias = recorded.at("bias");
  options.dropout = 0;
  Model model(options, {kFeatures, false, kClasses, recorded.at("multi_label").get<bool>()}, 1);
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const Parameter& p = model.parameters()[i];
    const bool weight = p.name.ends_with("weight");
    const double scale = weight ? 4 / std::sqrt(p.rows) : 0.4, shift = p.name.ends_with("scale") ? 1.0 : 0.0;
    const std::vector<float> values = matrix(100 + i, p.size(), scale, shift);
    std::copy(values.begin(), values.end(), model.values().begin() + static_cast<std::ptrdiff_t>(p.offset));
  }
  return model;
}

void expect_same_training(const nlohmann::json& recorded) {
  const Data data;
  const bool multi_label = recorded.at("multi_label");
  Model model = make_model(recorded);
  model.reserve({kNodes, 0});
  OptimiserOptions adam_options;
  adam_options.weight_decay = recorded.at("decay");
  Adam adam(adam_options, model);
  const auto losses = recorded.at("losses").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 10u);
  for (uint32_t step = 0; step < losses.size(); ++step) {
    std::vector<NodeId> nodes;
    for (NodeId v = step % kBatches; v < kNodes; v += kBatches) nodes.push_back(v);
    std::vector<uint32_t> labelled;
    for (uint32_t i = 0; i < nodes.size(); ++i)
      if (nodes[i] % 3 != 0) labelled.push_back(i);
    const MeanAdjacency adjacency(nodes);
    Batch batch;
    batch.inputs = nodes;
    batch.adjacencies = {&adjacency.adjacency, 1};
    batch.loss_rows = labelled;
    batch.num_outputs = static_cast<uint32_t>(nodes.size());
    const StepResult result =
        model.compute_gradients(batch, {data.x, data.aggregated, multi_label ? data.bits : data.classes}, 1);
    adam.step(model, 0.01f);
    EXPECT_NEAR(result.loss, losses[step], 1e-4 * losses[step]) << "step " << step;
  }
  for (const Parameter& p : model.parameters()) {
    const auto expected = recorded.at("weights").at(p.name).get<std::vector<double>>();
    ASSERT_EQ(expected.size(), p.size());
    double largest = 0, worst = 0;
    for (uint64_t i = 0; i < p.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      worst = std::max(worst, std::abs(expected[i] - model.values()[p.offset + i]));
    }
    EXPECT_LT(worst, 1e-4 * largest) << p.name;
  }
}

TEST(TenSteps, EqualThoseOfPyTorch) {
  std::ifstream file(std::string(CGCN_SOURCE_DIR) + "/tests/nn/reference/ten_steps.json");
  const auto recorded = nlohmann::json::parse(file);
  ASSERT_GE(recorded.at("cases").size(), 4u);
  for (const auto& one : recorded.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    expect_same_training(one);
  }
}

}  // namespace
}  // namespace cgcn
