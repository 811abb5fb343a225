#include "train/embedding_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "common/random.h"

namespace cgcn {
namespace {

constexpr int kIterations = 60;

double dot(const double* a, const double* b, size_t n) { return std::inner_product(a, a + n, b, 0.0); }

// Makes the two vectors orthonormal; one that vanishes becomes zero.
void orthonormalise(double* first, double* second, size_t n) {
  const auto scale = [n](double* vector) {
    const double length = std::sqrt(dot(vector, vector, n));
    for (size_t i = 0; i < n; ++i) vector[i] = length > 1e-30 ? vector[i] / length : 0;
  };
  scale(first);
  for (int twice = 0; twice < 2; ++twice) {  // once is not enough if the two are almost parallel
    const double along = dot(first, second, n);
    for (size_t i = 0; i < n; ++i) second[i] -= along * first[i];
  }
  scale(second);
}

// Turns the plane's two axes so that the rows are uncorrelated along them, the larger variance first.
void turn_to_axes(std::vector<double>& directions, size_t n, double a, double b, double c) {
  const double angle = 0.5 * std::atan2(2 * b, a - c), cosine = std::cos(angle), sine = std::sin(angle);
  for (size_t i = 0; i < n; ++i) {
    const double u = directions[i], v = directions[n + i];
    directions[i] = cosine * u + sine * v;
    directions[n + i] = cosine * v - sine * u;
  }
}

std::vector<double> column_means(const RowSample& sample) {
  const size_t rows = sample.nodes.size(), n = sample.columns;
  std::vector<double> mean(n);
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < n; ++i) mean[i] += sample.values[r * n + i];
  for (double& value : mean) value /= static_cast<double>(rows);
  return mean;
}

// Rows along both directions; with `sums`, also the next pair of directions, X'ᵀ·(X'·V).
void project(const RowSample& sample, const std::vector<double>& mean, const std::vector<double>& directions,
             std::vector<double>& projected, std::vector<double>* sums) {
  const size_t n = sample.columns;
  std::vector<double> row(n);
  if (sums != nullptr) sums->assign(2 * n, 0.0);
  for (size_t r = 0; r < sample.nodes.size(); ++r) {
    for (size_t i = 0; i < n; ++i) row[i] = sample.values[r * n + i] - mean[i];
    const double x = projected[2 * r] = dot(row.data(), directions.data(), n);
    const double y = projected[2 * r + 1] = dot(row.data(), directions.data() + n, n);
    if (sums == nullptr) continue;
    for (size_t i = 0; i < n; ++i) {
      (*sums)[i] += x * row[i];
      (*sums)[n + i] += y * row[i];
    }
  }
}

// Four digits: a picture shows no more.
double four_digits(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

bool has_class(const Labels& labels, NodeId v, uint32_t c) {
  return labels.multi_label() ? labels.has(v, c) : labels.class_of(v) == static_cast<int32_t>(c);
}

// Those of most sampled nodes first.
std::vector<uint32_t> largest_classes(const RowSample& sample, const Labels& labels) {
  std::vector<uint64_t> nodes(labels.num_classes());
  for (const NodeId v : sample.nodes) {
    if (!labels.multi_label()) {
      if (labels.class_of(v) >= 0) ++nodes[static_cast<size_t>(labels.class_of(v))];
      continue;
    }
    for (uint32_t c = 0; c < labels.num_classes(); ++c) nodes[c] += labels.has(v, c) ? 1 : 0;
  }
  std::vector<uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return nodes[a] > nodes[b]; });
  order.resize(std::min(order.size(), kMostPictureClasses));
  while (!order.empty() && nodes[order.back()] == 0) order.pop_back();
  return order;
}

void add_classes(const RowSample& sample, const Dataset& data, nlohmann::json& picture) {
  const std::vector<uint32_t> shown = largest_classes(sample, data.labels);
  nlohmann::json classes = nlohmann::json::array(), names = classes;
  for (const uint32_t c : shown) names.push_back(data.class_name(c));
  for (const NodeId v : sample.nodes) {
    nlohmann::json own = nlohmann::json::array();
    for (size_t k = 0; k < shown.size(); ++k)
      if (has_class(data.labels, v, shown[k])) own.push_back(k);
    classes.push_back(own);
  }
  picture["class_names"] = names;
  picture["classes"] = classes;
}

nlohmann::json values_of(const RowSample& sample, const Labels& labels) {
  nlohmann::json values = nlohmann::json::array();
  for (const NodeId v : sample.nodes)
    values.push_back(labels.known(v) ? nlohmann::json(four_digits(double{labels.value_of(v)})) : nlohmann::json());
  return values;
}

Role tested_role(const Dataset& data) {
  const auto [train, validation, test] = data.split_sizes();
  return test > 0 ? Role::kTest : validation > 0 ? Role::kValidation : Role::kTrain;
}

uint64_t sampled_nodes(uint64_t tested, size_t columns) {
  const uint64_t fitting = kMostSampledBytes / sizeof(float) / std::max<size_t>(1, columns);
  return std::min({tested, uint64_t{kMostSampledNodes}, std::max<uint64_t>(1, fitting)});
}

}  // namespace

uint64_t sampled_bytes(const Dataset& data, size_t columns) {
  return sampled_nodes(data.split_sizes()[static_cast<size_t>(tested_role(data))], columns) *
         (columns * sizeof(float) + sizeof(NodeId));
}

RowSample sample_tested_nodes(const Dataset& data, size_t columns) {
  const Role tested = tested_role(data);
  const uint64_t nodes = data.split_sizes()[static_cast<size_t>(tested)];
  const uint64_t wanted = sampled_nodes(nodes, columns);
  RowSample sample;
  sample.nodes.reserve(wanted);
  uint64_t seen = 0;
  for (NodeId v = 0; v < data.num_nodes() && sample.nodes.size() < wanted; ++v)
    if (data.role(v) == tested && seen++ >= sample.nodes.size() * nodes / wanted) sample.nodes.push_back(v);
  return sample;
}

Components principal_components(const RowSample& sample) {
  const size_t rows = sample.nodes.size(), n = sample.columns;
  Components made;
  made.directions.resize(2 * n);
  made.projected.resize(2 * rows);
  if (rows == 0 || n == 0) return made;
  const std::vector<double> mean = column_means(sample);
  Random random(0, Purpose::kSample);
  for (double& value : made.directions) value = random.normal();
  orthonormalise(made.directions.data(), made.directions.data() + n, n);
  std::vector<double> next;
  for (int i = 0; i < kIterations; ++i) {
    project(sample, mean, made.directions, made.projected, &next);
    std::swap(made.directions, next);
    orthonormalise(made.directions.data(), made.directions.data() + n, n);
  }
  project(sample, mean, made.directions, made.projected, nullptr);
  double a = 0, b = 0, c = 0, all = 0;
  for (size_t r = 0; r < rows; ++r) {
    a += made.projected[2 * r] * made.projected[2 * r];
    b += made.projected[2 * r] * made.projected[2 * r + 1];
    c += made.projected[2 * r + 1] * made.projected[2 * r + 1];
    for (size_t i = 0; i < n; ++i) all += std::pow(sample.values[r * n + i] - mean[i], 2);
  }
  turn_to_axes(made.directions, n, a, b, c);
  for (size_t k = 0; k < 2; ++k) {  // a sign of its own: the largest weight is positive
    const auto begin = made.directions.begin() + static_cast<std::ptrdiff_t>(k * n),
               end = begin + static_cast<std::ptrdiff_t>(n);
    const double largest = *std::max_element(begin, end, [](double x, double y) { return std::abs(x) < std::abs(y); });
    if (largest < 0) std::transform(begin, end, begin, [](double x) { return -x; });
  }
  project(sample, mean, made.directions, made.projected, nullptr);
  for (size_t r = 0; r < rows && all > 0; ++r)
    for (size_t k = 0; k < 2; ++k) made.share[k] += made.projected[2 * r + k] * made.projected[2 * r + k] / all;
  return made;
}

nlohmann::json describe_embeddings(const RowSample& sample, const Dataset& data) {
  const Components components = principal_components(sample);
  nlohmann::json x = nlohmann::json::array(), y = x;
  for (size_t r = 0; r < sample.nodes.size(); ++r) {
    x.push_back(four_digits(components.projected[2 * r]));
    y.push_back(four_digits(components.projected[2 * r + 1]));
  }
  constexpr const char* kRoleNames[] = {"train", "validation", "test"};
  const auto tested = static_cast<size_t>(tested_role(data));
  nlohmann::json picture = {{"part", kRoleNames[tested]},
                            {"nodes", data.split_sizes()[tested]},
                            {"share", {four_digits(components.share[0]), four_digits(components.share[1])}},
                            {"x", x},
                            {"y", y}};
  if (data.labels.regression())
    picture["values"] = values_of(sample, data.labels);
  else
    add_classes(sample, data, picture);
  return picture;
}

}  // namespace cgcn
