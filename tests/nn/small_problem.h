// A small random learning problem for the model's tests: features of every kind, labels, and batches of every shape.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "common/random.h"
#include "graph/batch.h"
#include "graph/dataset.h"
#include "graph/features.h"

namespace cgcn::test {

// A sparse matrix and its transpose, owned.
struct OwnedAdjacency {
  std::vector<uint64_t> offsets, transposed_offsets;
  std::vector<uint32_t> columns, transposed_columns;
  std::vector<float> values, transposed_values;
  uint32_t rows, sources;

  OwnedAdjacency(uint32_t num_rows, uint32_t num_sources, double density, uint64_t seed)
      : rows(num_rows), sources(num_sources) {
    Random random(seed, Purpose::kTest, 1);
    offsets.push_back(0);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t c = 0; c < sources; ++c)
        if (random.uniform() < density) {
          columns.push_back(c);
          values.push_back(0.1f + 0.3f * random.uniform());  // directed and weighted: not symmetric in any way
        }
      offsets.push_back(columns.size());
    }
    transposed_offsets.push_back(0);
    for (uint32_t c = 0; c < sources; ++c) {
      for (uint32_t r = 0; r < rows; ++r)
        for (uint64_t i = offsets[r]; i < offsets[r + 1]; ++i)
          if (columns[i] == c) {
            transposed_columns.push_back(r);
            transposed_values.push_back(values[i]);
          }
      transposed_offsets.push_back(transposed_columns.size());
    }
  }
  Adjacency adjacency() const {
    return {{rows, sources, offsets.data(), columns.data(), values.data()},
            {sources, rows, transposed_offsets.data(), transposed_columns.data(), transposed_values.data()}};
  }
};

enum class InputKind { kDense32, kDense16, kSparse, kIdentity };

struct SmallProblem {
  static constexpr uint32_t kNodes = 40, kClasses = 5;
  FeatureMatrix x, aggregated;
  Labels labels;
  std::vector<OwnedAdjacency> owned;
  std::vector<Adjacency> adjacencies;
  std::unique_ptr<OwnedAdjacency> owned_input;
  Adjacency input_adjacency;
  std::vector<NodeId> inputs;
  std::vector<uint32_t> loss_rows;
  Batch batch;

  // rectangular: every layer has fewer rows than the one below.
  SmallProblem(InputKind kind, uint32_t layers, bool rectangular, bool multi_label, uint64_t seed = 3,
               uint32_t batch_rows = 23, uint32_t columns = 7) {
    make_features(kind, columns, seed);
    make_labels(multi_label, seed);
    Random random(seed, Purpose::kTest, 2);
    inputs.resize(kNodes);
    std::iota(inputs.begin(), inputs.end(), 0u);
    random.shuffle(std::span(inputs));
    inputs.resize(batch_rows);
    uint32_t rows = batch_rows;
    if (!rectangular) {
      owned.emplace_back(rows, rows, 0.2, seed);
    } else {
      for (uint32_t layer = 2; layer <= layers; ++layer) {
        owned.emplace_back(rows - 5, rows, 0.2, seed + layer);
        rows -= 5;
      }
    }
    for (const OwnedAdjacency& adjacency : owned) adjacencies.push_back(adjacency.adjacency());
    for (uint32_t r = 0; r < rows; ++r)
      if (r % 3 != 1) loss_rows.push_back(r);
    batch.epoch = 2;
    batch.index = 7;
    batch.inputs = inputs;
    batch.adjacencies = adjacencies;
    batch.loss_rows = loss_rows;
    batch.num_outputs = rows;
  }

  // Layer 1 aggregates X: the rows that it had get eight more to take from.
  void aggregate_input(uint64_t seed = 3) {
    const auto targets = static_cast<uint32_t>(inputs.size());
    for (NodeId v = 0; inputs.size() < targets + 8; ++v)
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) inputs.push_back(v);
    owned_input = std::make_unique<OwnedAdjacency>(targets, targets + 8, 0.2, seed + 1);
    input_adjacency = owned_input->adjacency();
    batch.inputs = inputs;
    batch.input_adjacency = &input_adjacency;
  }

  bool sparse() const { return !x.is_dense(); }

 private:
  static FeatureMatrix random_sparse(uint32_t columns, double density, uint64_t seed) {
    Random random(seed, Purpose::kTest, 3);
    std::vector<EdgeOffset> offsets{0};
    std::vector<uint32_t> indices;
    std::vector<float> values;
    for (uint32_t v = 0; v < kNodes; ++v) {
      for (uint32_t c = 0; c < columns; ++c)
        if (random.uniform() < density) {
          indices.push_back(c);
          values.push_back(random.normal());
        }
      offsets.push_back(indices.size());
    }
    return FeatureMatrix::sparse(std::move(offsets), std::move(indices), std::move(values), columns);
  }
  static FeatureMatrix random_dense(uint32_t columns, bool half, uint64_t seed) {
    Random random(seed, Purpose::kTest, 4);
    std::vector<float> values(kNodes * columns);
    for (float& value : values) value = random.normal();
    if (!half) return FeatureMatrix::dense(std::move(values), columns);
    std::vector<Half> halves;
    for (const float value : values) halves.push_back(float_to_half(value));
    return FeatureMatrix::dense16(std::move(halves), columns);
  }
  void make_features(InputKind kind, uint32_t columns, uint64_t seed) {
    const bool half = kind == InputKind::kDense16;
    if (kind == InputKind::kDense32 || half) {
      x = random_dense(columns, half, seed);
      aggregated = random_dense(columns, half, seed + 1);
    } else if (kind == InputKind::kSparse) {
      x = random_sparse(columns, 0.3, seed);
      aggregated = random_sparse(columns, 0.6, seed + 1);
    } else {
      x = FeatureMatrix::identity(kNodes);
      aggregated = random_sparse(kNodes, 0.1, seed);
    }
  }
  void make_labels(bool multi_label, uint64_t seed) {
    Random random(seed, Purpose::kTest, 5);
    if (multi_label) {
      std::vector<uint8_t> bits(kNodes * Labels::row_bytes(kClasses));
      for (auto& byte : bits) byte = static_cast<uint8_t>(random.below(1u << kClasses));
      labels = Labels::multi(std::move(bits), kClasses);
    } else {
      std::vector<int32_t> classes(kNodes);
      for (auto& label : classes) label = static_cast<int32_t>(random.below(kClasses));
      labels = Labels::single(std::move(classes), kClasses);
    }
  }
};

}  // namespace cgcn::test
