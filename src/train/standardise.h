// Feature columns shifted and scaled to mean 0 and deviation 1 on the training nodes, as the released code does; other
// graphs are shifted and scaled by the same numbers, which a model therefore carries with it. Or rows divided by their
// sums, as Kipf and Welling do.
#pragma once

#include <optional>
#include <vector>

#include "graph/dataset.h"
#include "graph/normalisation.h"
#include "nn/loss.h"
#include "partition/partition.h"

namespace cgcn {

struct ColumnScaling {
  std::vector<uint32_t> columns = {};  // of the graph, in the order that a model takes them; empty: all as they are
  bool rows = false;                   // every row is divided by its sum
  std::vector<float> mean, scale;      // x' = (x - mean)·scale; empty: features are left as they are

  bool empty() const { return mean.empty(); }
  void apply(float* row) const {
    for (size_t c = 0; c < mean.size(); ++c) row[c] = (row[c] - mean[c]) * scale[c];
  }
  // What copies of X, and of N(A)·X, take if features are scaled in memory.
  uint64_t copied_bytes(const FeatureMatrix& features, bool aggregates) const {
    if (!empty() || !columns.empty()) return (aggregates ? 2 : 1) * features.num_entries() * sizeof(float);
    return rows ? features.normalised_bytes() : 0;  // A·X is mapped
  }
};

// Whether a sample of the rows has negative values. A row's sum may then be near 0.
bool has_negative_values(const FeatureMatrix& features);

// Of the rows whose role is training. A constant column gets scale 1. Error if the features are not dense.
ColumnScaling measure_columns(const Dataset& data);

// X and N(A)·X as a model takes them.
struct PreparedFeatures {
  FeatureMatrix x, aggregated;
};
// X as the scaling says.
FeatureMatrix scale_features(const Dataset& data, const ColumnScaling& scaling);
// The standardised X and N(A) times it, in memory.
PreparedFeatures standardise(const Dataset& data, const Normalisation& normalisation, const ColumnScaling& scaling);
// As the scaling says; files keeps N(A)·X and data is what it holds: a Store or a ClusterLayout. No normalisation: X
// alone.
template <class Files>
PreparedFeatures prepare_features(const Files& files, const Dataset& data,
                                  const std::optional<Normalisation>& normalisation, const ColumnScaling& scaling,
                                  uint64_t memory = kPartitionMemory) {
  if (!normalisation) return {scale_features(data, scaling), {}};
  if (!scaling.empty() || !scaling.columns.empty()) return standardise(data, *normalisation, scaling);
  FeatureMatrix x = scale_features(data, scaling);
  const uint64_t copied = scaling.copied_bytes(data.features, true), left = memory > copied ? memory - copied : 0;
  FeatureMatrix aggregated = aggregated_features(files, *normalisation, left, scaling.rows ? &x : nullptr);
  return {std::move(x), std::move(aggregated)};
}

// Mean and deviation of the training nodes' numbers; a deviation of 0 counts as 1.
TargetScaling measure_target(const Dataset& data);

}  // namespace cgcn
