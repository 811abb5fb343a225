// Small random datasets of every kind, for tests that compare with brute force.
#pragma once

#include <vector>

#include "common/random.h"
#include "graph/dataset.h"
#include "graph/graph_builder.h"

namespace cgcn::test {

// Directed or not, weighted or not, with loops, duplicates, isolated nodes and separate pieces as the seed has it.
inline Dataset random_dataset(uint32_t seed) {
  Random random(seed, Purpose::kTest, 77);
  const NodeId n = 1 + random.below(60);
  const bool directed = random.below(2) == 0, weighted = random.below(3) == 0;
  const NodeId pieces = 1 + random.below(3);
  EdgeList edges(weighted);
  const uint32_t count = random.below(4) == 0 ? random.below(5) : random.below(6 * n);
  for (uint32_t i = 0; i < count; ++i) {
    const NodeId u = random.below(n), v = random.below(n);
    if (u % pieces == v % pieces) edges.add(u, v, weighted ? 0.1f + random.uniform() : 1.0f);
  }
  Dataset data;
  data.name = "random";
  data.graph = build_graph(n, edges, {.directed = directed, .keep_self_loops = random.below(2) == 0}, nullptr);
  const uint32_t columns = 1 + random.below(9);
  const uint32_t kind = random.below(4);
  if (kind == 0) {
    std::vector<float> values(size_t{n} * columns);
    for (float& value : values) value = random.normal();
    data.features = FeatureMatrix::dense(std::move(values), columns);
  } else if (kind == 1) {
    std::vector<Half> values(size_t{n} * columns);
    for (Half& value : values) value = float_to_half(random.normal());
    data.features = FeatureMatrix::dense16(std::move(values), columns);
  } else if (kind == 2) {
    std::vector<EdgeOffset> offsets{0};
    std::vector<uint32_t> held;
    std::vector<float> values;
    for (NodeId v = 0; v < n; ++v) {
      for (uint32_t c = 0; c < columns; ++c)
        if (random.below(3) == 0) {
          held.push_back(c);
          values.push_back(random.normal());
        }
      offsets.push_back(held.size());
    }
    data.features = FeatureMatrix::sparse(std::move(offsets), std::move(held), std::move(values), columns);
  } else {
    data.features = FeatureMatrix::identity(n);
  }
  const uint32_t classes = 2 + random.below(9);
  if (random.below(2) == 0) {
    std::vector<int32_t> labels(n);
    for (int32_t& label : labels) label = static_cast<int32_t>(random.below(classes + 1)) - 1;
    data.labels = Labels::single(std::move(labels), classes);
  } else {
    std::vector<uint8_t> bits(n * Labels::row_bytes(classes));
    for (NodeId v = 0; v < n; ++v)
      for (uint32_t c = 0; c < classes; ++c)
        bits[v * Labels::row_bytes(classes) + c / 8] |= static_cast<uint8_t>(random.below(2) << (c % 8));
    data.labels = Labels::multi(std::move(bits), classes);
  }
  std::vector<uint8_t> split(n);
  for (uint8_t& role : split) role = random.below(4) == 0 ? uint8_t{255} : static_cast<uint8_t>(random.below(5) / 2);
  split[random.below(n)] = 0;
  data.split = std::move(split);
  if (pieces > 1) {
    std::vector<uint32_t> graph_ids(n);
    for (NodeId v = 0; v < n; ++v) graph_ids[v] = v % pieces;
    data.graph_ids = std::move(graph_ids);
  }
  const uint32_t ids = random.below(3);
  if (ids == 1) {
    std::vector<int64_t> numbers(n);
    for (NodeId v = 0; v < n; ++v) numbers[v] = 1000 - 3 * int64_t{v};
    data.ids = NodeIds::integers(std::move(numbers));
  } else if (ids == 2) {
    std::vector<uint64_t> offsets{0};
    std::vector<char> text;
    for (NodeId v = 0; v < n; ++v) {
      for (const char c : "node " + std::to_string(v * v)) text.push_back(c);
      offsets.push_back(text.size());
    }
    data.ids = NodeIds::strings(std::move(offsets), std::move(text));
  }
  return data;
}

using DenseMatrix = std::vector<std::vector<double>>;

inline DenseMatrix zeros(size_t rows, size_t columns) { return DenseMatrix(rows, std::vector<double>(columns, 0)); }

inline DenseMatrix dense_adjacency(const CsrGraph& graph) {
  DenseMatrix matrix = zeros(graph.num_nodes(), graph.num_nodes());
  for (NodeId v = 0; v < graph.num_nodes(); ++v)
    for (size_t k = 0; k < graph.degree(v); ++k)
      matrix[v][graph.neighbours(v)[k]] = graph.weighted() ? graph.neighbour_weights(v)[k] : 1.0;
  return matrix;
}

inline DenseMatrix dense_features(const FeatureMatrix& features) {
  DenseMatrix matrix = zeros(features.rows(), features.columns());
  for (NodeId v = 0; v < features.rows(); ++v) {
    if (features.is_dense()) {
      std::vector<float> row(features.columns());
      features.copy_row(v, row.data());
      std::copy(row.begin(), row.end(), matrix[v].begin());
    } else if (features.kind() == FeatureMatrix::Kind::kIdentity) {
      matrix[v][v] = 1;
    } else {
      for (size_t k = 0; k < features.row_columns(v).size(); ++k)
        matrix[v][features.row_columns(v)[k]] = features.row_values(v)[k];
    }
  }
  return matrix;
}

}  // namespace cgcn::test
