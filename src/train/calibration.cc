#include "train/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/interrupt.h"
#include "common/threads.h"
#include "train/ranking.h"

namespace cgcn {
namespace {

constexpr size_t kRowsFitted = size_t{1} << 16;  // read at a time
constexpr size_t kFittedBlock = 1024;            // rows that a thread adds up

// First and second derivative of the loss of b·logits by b.
struct Slope {
  double first = 0, second = 0;
  void add(const Slope& other) {
    first += other.first;
    second += other.second;
  }
};

// Softmax: E[z] - z_label and Var[z] under softmax(b·z).
Slope slope_of_row(const float* row, uint32_t classes, uint32_t label, double b) {
  double largest = row[0];
  for (uint32_t c = 1; c < classes; ++c) largest = std::max<double>(largest, row[c]);
  double sum = 0, mean = 0, square = 0;
  for (uint32_t c = 0; c < classes; ++c) {
    const double difference = row[c] - largest, e = std::exp(b * difference);
    sum += e;
    mean += e * difference;
    square += e * difference * difference;
  }
  mean /= sum;
  return {mean + largest - row[label], std::max(0.0, square / sum - mean * mean)};
}

// Sigmoid of each class: (p - bit)·z and p·(1 - p)·z².
Slope slope_of_bits(const float* row, const Labels& labels, NodeId v, double b) {
  Slope slope;
  for (uint32_t c = 0; c < labels.num_classes(); ++c) {
    const double z = row[c], p = 1 / (1 + std::exp(-b * z));
    slope.add({(p - (labels.has(v, c) ? 1 : 0)) * z, p * (1 - p) * z * z});
  }
  return slope;
}

// Over the validation nodes, in blocks that do not depend on the threads.
Slope slope_at(const SlabMatrix& logits, const Dataset& data, double b) {
  Slope total;
  std::vector<float> scratch(logits.spilled() ? std::min<size_t>(kRowsFitted, logits.rows()) * logits.columns() : 0);
  for (size_t begin = 0; begin < data.num_nodes(); begin += kRowsFitted) {
    throw_if_interrupted();
    const size_t end = std::min<size_t>(data.num_nodes(), begin + kRowsFitted);
    const kernels::ConstMatrix rows = logits.read_rows({begin, end}, scratch.data());
    std::vector<Slope> slopes((rows.rows + kFittedBlock - 1) / kFittedBlock);
    parallel_blocks(rows.rows, kFittedBlock, [&](size_t first, size_t last) {
      for (size_t r = first; r < last; ++r) {
        const auto v = static_cast<NodeId>(begin + r);
        if (data.role(v) != Role::kValidation) continue;
        const Labels& labels = data.labels;
        if (labels.multi_label())
          slopes[first / kFittedBlock].add(slope_of_bits(rows.row(r), labels, v, b));
        else if (labels.class_of(v) >= 0)
          slopes[first / kFittedBlock].add(
              slope_of_row(rows.row(r), labels.num_classes(), static_cast<uint32_t>(labels.class_of(v)), b));
      }
    });
    for (const Slope& slope : slopes) total.add(slope);
  }
  return total;
}

}  // namespace

std::optional<double> fit_temperature(const SlabMatrix& logits, const Dataset& data) {
  constexpr double kLeast = 0.01, kMost = 100, kPrecision = 1e-7;
  constexpr int kSteps = 40;
  bool validated = false;
  for (NodeId v = 0; v < data.num_nodes() && !validated; ++v)
    validated = data.role(v) == Role::kValidation && data.labels.known(v);
  if (!validated) return std::nullopt;
  double low = kLeast, high = kMost, b = 1;  // 1 / T; the slope rises with it
  for (int step = 0; step < kSteps; ++step) {
    const Slope slope = slope_at(logits, data, b);
    if (!std::isfinite(slope.first)) return std::nullopt;
    if (slope.first == 0) break;
    (slope.first < 0 ? low : high) = b;
    double next = slope.second > 0 ? b - slope.first / slope.second : slope.first < 0 ? high : low;
    if (!(next > low && next < high)) next = std::sqrt(low * high);
    const double moved = std::abs(next - b) / b;
    b = next;
    if (moved < kPrecision || high / low < 1 + kPrecision) break;
  }
  return 1 / b;
}

std::vector<float> choose_thresholds(const SlabMatrix& logits, const Dataset& data, uint64_t memory) {
  std::vector<float> thresholds(data.labels.num_classes(), 0.0f);
  for_each_ranked_class(logits, data, Role::kValidation, memory,
                        [&](uint32_t c, const RankedClass& ranked) { thresholds[c] = best_threshold(ranked); });
  return thresholds;
}

}  // namespace cgcn
