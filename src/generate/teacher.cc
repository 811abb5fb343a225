// T₀ is what a node's features show of the hidden quantities. Each layer bends a random turn of the one before and
// joins what a node has to the mean of what its neighbours have, both standardised:
//
//   B_k = σ(bend · T_{k-1}·R_k), σ(x) = x / √(1 + x²),  T_k = std(B_k) + std(D⁻¹A·B_k)
//
// A label's score is T_last·v for a random v; the label is on for the nodes with the highest scores, as many as its
// frequency says. The score is an exact function of the features of as many hops as there are layers, and because of
// the bends it cannot be had from fewer: a network of few layers sees less of it, and one whose edges are cut less
// again.
#include "generate/teacher.h"

#include <algorithm>
#include <cmath>

#include "common/interrupt.h"
#include "common/progress.h"
#include "common/threads.h"
#include "generate/streams.h"
#include "graph/dataset.h"

namespace cgcn {
namespace {

constexpr size_t kLabelledRows = 2048;
constexpr double kLeastFrequency = 0.1, kFrequencyRange = 0.4;  // of a label among the nodes

using HiddenRows = std::vector<HiddenRow>;

HiddenRows read_all(const NodeFeatures& features, NodeId n) {
  HiddenRows rows(n);
  parallel_blocks(n, kLabelledRows, [&](size_t begin, size_t end) {
    std::vector<float> row(features.columns());
    for (size_t v = begin; v < end; ++v) {
      features.row(static_cast<NodeId>(v), row);
      rows[v] = features.read_hidden(row);
    }
  });
  return rows;
}

// Zero mean and unit variance for each column. Sums go block by block, so that threads do not change them.
void standardise(HiddenRows& rows) {
  struct Sums {
    std::array<double, kHidden> first{}, second{};
  };
  const size_t n = rows.size();
  std::vector<Sums> partial((n + kLabelledRows - 1) / kLabelledRows);
  parallel_blocks(n, kLabelledRows, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v)
      for (uint32_t j = 0; j < kHidden; ++j) {
        const double x = rows[v][j];
        partial[begin / kLabelledRows].first[j] += x;
        partial[begin / kLabelledRows].second[j] += x * x;
      }
  });
  for (uint32_t j = 0; j < kHidden; ++j) {
    double first = 0, second = 0;
    for (const Sums& sums : partial) {
      first += sums.first[j];
      second += sums.second[j];
    }
    const double mean = first / static_cast<double>(n), variance = second / static_cast<double>(n) - mean * mean;
    const double scale = 1 / std::sqrt(std::max(variance, 1e-12));
    for (HiddenRow& row : rows) row[j] = static_cast<float>((row[j] - mean) * scale);
  }
}

HiddenRows neighbour_means(const CsrGraph& graph, const HiddenRows& rows) {
  HiddenRows means(rows.size());
  parallel_blocks(rows.size(), kLabelledRows, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v) {
      const auto neighbours = graph.neighbours(static_cast<NodeId>(v));
      HiddenRow sum{};
      for (const NodeId u : neighbours)
        for (uint32_t j = 0; j < kHidden; ++j) sum[j] += rows[u][j];
      const float scale = neighbours.empty() ? 0 : 1 / static_cast<float>(neighbours.size());
      for (uint32_t j = 0; j < kHidden; ++j) means[v][j] = scale * sum[j];
    }
  });
  return means;
}

// σ(bend · rows·R) with R's columns random directions of length one.
void turn_and_bend(HiddenRows& rows, float bend, Random random) {
  std::array<HiddenRow, kHidden> directions;
  for (HiddenRow& direction : directions) {
    float square = 0;
    for (float& x : direction) {
      x = random.normal();
      square += x * x;
    }
    for (float& x : direction) x *= bend / std::sqrt(square);
  }
  parallel_blocks(rows.size(), kLabelledRows, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v) {
      const HiddenRow given = rows[v];
      for (uint32_t j = 0; j < kHidden; ++j) {
        float sum = 0;
        for (uint32_t i = 0; i < kHidden; ++i) sum += directions[j][i] * given[i];
        rows[v][j] = sum / std::sqrt(1 + sum * sum);
      }
    }
  });
}

HiddenRows run_teacher(const Shape& shape, const CsrGraph& graph, const NodeFeatures& features, uint64_t seed,
                       Progress& progress) {
  HiddenRows rows = read_all(features, shape.nodes);
  standardise(rows);
  for (uint32_t layer = 0; layer < shape.signal.teacher_layers; ++layer) {
    throw_if_interrupted();
    turn_and_bend(rows, shape.signal.bend, stream(seed, Stream::kTeacherLayers, layer));
    HiddenRows means = neighbour_means(graph, rows);
    standardise(rows);
    standardise(means);
    for (size_t v = 0; v < rows.size(); ++v)
      for (uint32_t j = 0; j < kHidden; ++j) rows[v][j] += means[v][j];
    standardise(rows);
    progress.advance();
  }
  return rows;
}

}  // namespace

std::vector<uint8_t> teach_labels(const Shape& shape, const CsrGraph& graph, const NodeFeatures& features,
                                  uint64_t seed) {
  Progress progress("making labels", shape.signal.teacher_layers + shape.classes);
  const HiddenRows rows = run_teacher(shape, graph, features, seed, progress);
  const size_t row_bytes = Labels::row_bytes(shape.classes);
  std::vector<uint8_t> bits(shape.nodes * row_bytes);
  std::vector<float> scores(shape.nodes), sorted(shape.nodes);
  for (uint32_t label = 0; label < shape.classes; ++label) {
    throw_if_interrupted();
    Random random = stream(seed, Stream::kTeacher, label);
    HiddenRow weights;
    for (float& weight : weights) weight = random.normal();
    parallel_blocks(shape.nodes, kLabelledRows, [&](size_t begin, size_t end) {
      for (size_t v = begin; v < end; ++v) {
        float sum = 0;
        for (uint32_t j = 0; j < kHidden; ++j) sum += weights[j] * rows[v][j];
        scores[v] = sum;
      }
    });
    const double frequency = kLeastFrequency + kFrequencyRange * random.uniform_double();
    sorted = scores;
    const auto cut = sorted.begin() + static_cast<std::ptrdiff_t>((1 - frequency) * shape.nodes);
    std::nth_element(sorted.begin(), cut, sorted.end());
    for (size_t v = 0; v < shape.nodes; ++v)
      if (scores[v] >= *cut) bits[v * row_bytes + label / 8] |= static_cast<uint8_t>(1u << (label % 8));
    progress.advance();
  }
  return bits;
}

}  // namespace cgcn
