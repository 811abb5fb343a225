// T₀ = X·P;  T_k = tanh(standardise([D⁻¹A·T_{k-1}, T_{k-1}]·B_k));  score = standardise(Σ_k c_k T_k·V_k).
// A label is on for the share of nodes with the highest scores that the label's frequency says.
#include "generate/teacher.h"

#include <algorithm>
#include <cmath>

#include "common/threads.h"
#include "generate/streams.h"
#include "graph/dataset.h"

namespace cgcn {
namespace {

constexpr uint32_t kWidth = 16;
constexpr size_t kRowBlock = 2048;
constexpr std::array<float, 4> kHopShare = {0.2f, 0.5f, 0.25f, 0.1f};
constexpr float kSteepness = 2;

using Rows = Buffer<float>;  // n × kWidth

std::vector<float> random_matrix(size_t rows, size_t columns, uint64_t seed, uint32_t which) {
  Random random = stream(seed, Stream::kTeacher, which);
  std::vector<float> values(rows * columns);
  for (float& value : values) value = random.normal() / std::sqrt(static_cast<float>(rows));
  return values;
}

Rows project(const NodeFeatures& features, NodeId n, uint64_t seed) {
  const uint32_t columns = features.columns();
  const std::vector<float> projection = random_matrix(columns, kWidth, seed, 0);
  Rows out(size_t{n} * kWidth, 0);
  parallel_blocks(n, kRowBlock, [&](size_t begin, size_t end) {
    std::vector<float> row(columns);
    for (size_t v = begin; v < end; ++v) {
      features.row(static_cast<NodeId>(v), row);
      float* to = &out[v * kWidth];
      for (uint32_t f = 0; f < columns; ++f)
        for (uint32_t j = 0; j < kWidth; ++j) to[j] += row[f] * projection[size_t{f} * kWidth + j];
    }
  });
  return out;
}

// Zero mean and unit variance for each column; sums go block by block, so that threads do not change them.
void standardise(Rows& rows) {
  const size_t n = rows.size() / kWidth, blocks = (n + kRowBlock - 1) / kRowBlock;
  std::vector<std::array<double, 2 * kWidth>> partial(blocks);
  parallel_blocks(n, kRowBlock, [&](size_t begin, size_t end) {
    auto& sums = partial[begin / kRowBlock];
    sums.fill(0);
    for (size_t v = begin; v < end; ++v)
      for (uint32_t j = 0; j < kWidth; ++j) {
        const double x = rows[v * kWidth + j];
        sums[j] += x;
        sums[kWidth + j] += x * x;
      }
  });
  std::array<double, 2 * kWidth> total{};
  for (const auto& sums : partial)
    for (uint32_t j = 0; j < 2 * kWidth; ++j) total[j] += sums[j];
  std::array<float, kWidth> mean{}, scale{};
  for (uint32_t j = 0; j < kWidth; ++j) {
    const double m = total[j] / static_cast<double>(n), variance = total[kWidth + j] / static_cast<double>(n) - m * m;
    mean[j] = static_cast<float>(m);
    scale[j] = static_cast<float>(1 / std::sqrt(std::max(variance, 1e-12)));
  }
  parallel_blocks(n, kRowBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin * kWidth; i < end * kWidth; ++i) rows[i] = (rows[i] - mean[i % kWidth]) * scale[i % kWidth];
  });
}

Rows aggregate(const CsrGraph& graph, const Rows& rows) {
  Rows out(rows.size(), 0);
  parallel_blocks(graph.num_nodes(), kRowBlock, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v) {
      float* to = &out[v * kWidth];
      const auto neighbours = graph.neighbours(static_cast<NodeId>(v));
      for (const NodeId u : neighbours)
        for (uint32_t j = 0; j < kWidth; ++j) to[j] += rows[size_t{u} * kWidth + j];
      for (uint32_t j = 0; j < kWidth && !neighbours.empty(); ++j) to[j] /= static_cast<float>(neighbours.size());
    }
  });
  return out;
}

Rows next_hop(const CsrGraph& graph, const Rows& last, uint64_t seed, uint32_t hop) {
  Rows mean = aggregate(graph, last);
  standardise(mean);
  const std::vector<float> mix = random_matrix(size_t{2} * kWidth, kWidth, seed, hop);
  Rows out(last.size(), 0);
  parallel_blocks(graph.num_nodes(), kRowBlock, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v)
      for (uint32_t i = 0; i < kWidth; ++i)
        for (uint32_t j = 0; j < kWidth; ++j)
          out[v * kWidth + j] += 1.2f * mean[v * kWidth + i] * mix[i * kWidth + j] +
                                 0.4f * last[v * kWidth + i] * mix[(kWidth + i) * kWidth + j];
  });
  standardise(out);
  parallel_blocks(out.size(), kRowBlock * kWidth, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) out[i] = std::tanh(kSteepness * out[i]);
  });
  return out;
}

}  // namespace

std::vector<uint8_t> teach_labels(const Shape& shape, const CsrGraph& graph, const NodeFeatures& features,
                                  uint64_t seed) {
  std::vector<Rows> hops;
  Rows last = project(features, shape.nodes, seed);
  standardise(last);
  for (uint32_t hop = 1; hop <= kHopShare.size(); ++hop) {
    hops.push_back(next_hop(graph, last, seed, hop));
    last = Rows(hops.back().size());
    std::copy(hops.back().begin(), hops.back().end(), last.begin());
  }
  const size_t row_bytes = Labels::row_bytes(shape.classes);
  std::vector<uint8_t> bits(shape.nodes * row_bytes);
  std::vector<float> score(shape.nodes), sorted(shape.nodes);
  for (uint32_t label = 0; label < shape.classes; ++label) {
    Random random = stream(seed, Stream::kTeacher, 1000 + label);
    std::array<std::array<float, kWidth>, kHopShare.size()> weights;
    for (size_t hop = 0; hop < kHopShare.size(); ++hop)
      for (float& weight : weights[hop]) weight = kHopShare[hop] * random.normal();
    const double frequency = 0.1 + 0.4 * random.uniform_double();
    parallel_blocks(shape.nodes, kRowBlock, [&](size_t begin, size_t end) {
      for (size_t v = begin; v < end; ++v) {
        float sum = 0;
        for (size_t hop = 0; hop < kHopShare.size(); ++hop)
          for (uint32_t j = 0; j < kWidth; ++j) sum += weights[hop][j] * hops[hop][v * kWidth + j];
        score[v] = sum;
      }
    });
    std::copy(score.begin(), score.end(), sorted.begin());
    const auto cut = sorted.begin() + static_cast<std::ptrdiff_t>((1 - frequency) * shape.nodes);
    std::nth_element(sorted.begin(), cut, sorted.end());
    for (size_t v = 0; v < shape.nodes; ++v)
      if (score[v] >= *cut) bits[v * row_bytes + label / 8] |= static_cast<uint8_t>(1u << (label % 8));
  }
  return bits;
}

}  // namespace cgcn
