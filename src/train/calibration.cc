#include "train/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/buffer.h"
#include "common/error.h"
#include "common/interrupt.h"
#include "common/threads.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;

// The loss of b·logits, and its first and second derivative by b.
struct TemperatureFit::Slope {
  double loss = 0, first = 0, second = 0;
  void add(const Slope& other) {
    loss += other.loss;
    first += other.first;
    second += other.second;
  }
  static Slope of_row(const float* row, uint32_t classes, uint32_t label, double doubt, double b);
  static Slope of_bits(const float* row, const Labels& labels, NodeId v, double doubt, double b);
};

// Softmax: E[z] - z_label and Var[z] under softmax(b·z); in place of z_label, the mean of all z has a share of doubt.
TemperatureFit::Slope TemperatureFit::Slope::of_row(const float* row, uint32_t classes, uint32_t label, double doubt,
                                                    double b) {
  double largest = row[0];
  for (uint32_t c = 1; c < classes; ++c) largest = std::max<double>(largest, row[c]);
  double sum = 0, mean = 0, square = 0, all = 0;
  for (uint32_t c = 0; c < classes; ++c) {
    const double difference = row[c] - largest, e = std::exp(b * difference);
    sum += e;
    mean += e * difference;
    square += e * difference * difference;
    all += difference;
  }
  mean /= sum;
  const double target = (1 - doubt) * (row[label] - largest) + doubt * all / classes;
  return {std::log(sum) - b * target, mean - target, std::max(0.0, square / sum - mean * mean)};
}

// Sigmoid of each class: (p - bit)·z and p·(1 - p)·z².
TemperatureFit::Slope TemperatureFit::Slope::of_bits(const float* row, const Labels& labels, NodeId v, double doubt,
                                                     double b) {
  Slope slope;
  for (uint32_t c = 0; c < labels.num_classes(); ++c) {
    const double z = row[c], p = 1 / (1 + std::exp(-b * z)), target = labels.has(v, c) ? 1 - doubt / 2 : doubt / 2;
    slope.add({std::max(b * z, 0.0) + std::log1p(std::exp(-std::abs(b * z))) - target * b * z, (p - target) * z,
               p * (1 - p) * z * z});
  }
  return slope;
}

TemperatureFit::TemperatureFit(const Dataset& data, uint64_t memory) : data_(data) {
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.role(v) == Role::kValidation && data.labels.known(v)) nodes_.push_back(v);
  const size_t columns = data.labels.num_classes();
  const bool fits = uint64_t{nodes_.size()} * columns * sizeof(float) <= memory;
  rows_ = SlabMatrix(nodes_.size(), columns, fits ? 0 : columns);
}

void TemperatureFit::add(ConstMatrix rows, NodeId first) {
  constexpr size_t kWritten = 1024;  // rows at a time: the buffers of more would count
  const auto passes = [&](size_t i) { return i < nodes_.size() && nodes_[i] < first + rows.rows; };
  while (passes(added_)) {
    kernels::RowRange range{added_, added_};
    while (passes(range.end) && range.size() < kWritten) ++range.end;
    Buffer<float> scratch(rows_.spilled() ? range.size() * rows_.columns() : 0);
    const Matrix place = rows_.place_rows(range, scratch.data());
    for (size_t i = 0; i < range.size(); ++i)
      std::copy_n(rows.row(nodes_[added_ + i] - first), rows_.columns(), place.row(i));
    rows_.write_rows(range, scratch.data());
    added_ = range.end;
  }
}

// Over all rows, in blocks that do not depend on the threads.
TemperatureFit::Slope TemperatureFit::slope_at(double b, const RowMap& to_logits, double doubt) const {
  constexpr size_t kAtOnce = size_t{1} << 12;  // rows read
  constexpr size_t kBlock = 1024;              // rows that a thread adds up
  const Labels& labels = data_.labels;
  Slope total;
  Buffer<float> scratch(rows_.spilled() ? std::min(kAtOnce, rows_.rows()) * rows_.columns() : 0);
  for (size_t begin = 0; begin < rows_.rows(); begin += kAtOnce) {
    throw_if_interrupted();
    const ConstMatrix rows = rows_.read_rows({begin, std::min(rows_.rows(), begin + kAtOnce)}, scratch.data());
    std::vector<Slope> slopes((rows.rows + kBlock - 1) / kBlock);
    parallel_blocks(rows.rows, kBlock, [&](size_t first, size_t last) {
      std::vector<float> logits(rows_.columns());
      for (size_t r = first; r < last; ++r) {
        const NodeId v = nodes_[begin + r];
        std::copy_n(rows.row(r), logits.size(), logits.begin());
        if (to_logits) to_logits(logits);
        slopes[first / kBlock].add(labels.multi_label()
                                       ? Slope::of_bits(logits.data(), labels, v, doubt, b)
                                       : Slope::of_row(logits.data(), labels.num_classes(),
                                                       static_cast<uint32_t>(labels.class_of(v)), doubt, b));
      }
    });
    for (const Slope& slope : slopes) total.add(slope);
  }
  return total;
}

std::optional<TemperatureFit::Fitted> TemperatureFit::fit(const RowMap& to_logits, double doubt) const {
  constexpr double kLeast = 0.01, kMost = 100, kPrecision = 1e-7;
  constexpr int kSteps = 40;
  CGCN_CHECK(added_ == nodes_.size());
  if (nodes_.empty()) return std::nullopt;
  double low = kLeast, high = kMost, b = 1;  // 1 / T; the slope rises with it
  double loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Slope slope = slope_at(b, to_logits, doubt);
    if (!std::isfinite(slope.first)) return std::nullopt;
    loss = slope.loss;
    if (slope.first == 0) break;
    (slope.first < 0 ? low : high) = b;
    double next = slope.second > 0 ? b - slope.first / slope.second : slope.first < 0 ? high : low;
    if (!(next > low && next < high)) next = std::sqrt(low * high);
    const double moved = std::abs(next - b) / b;
    b = next;
    if (moved < kPrecision || high / low < 1 + kPrecision) break;
  }
  return Fitted{1 / b, loss};
}

}  // namespace cgcn
