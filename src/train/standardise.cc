#include "train/standardise.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "common/error.h"
#include "common/threads.h"
#include "kernels/spmm.h"
#include "train/inference.h"

namespace cgcn {
namespace {

constexpr size_t kStandardisedRows = 1024;  // rows a task

void require_dense(const FeatureMatrix& features) {
  if (!features.is_dense())
    throw Error("only dense features can be standardised: sparse ones would become dense", "--standardise",
                "leave it out");
}

}  // namespace

bool has_negative_values(const FeatureMatrix& features) {
  constexpr uint64_t kSampledRows = 5000;  // evenly over the nodes
  if (features.kind() == FeatureMatrix::Kind::kIdentity) return false;
  const uint64_t step = std::max<uint64_t>(1, features.rows() / kSampledRows);
  std::vector<float> dense(features.is_dense() ? features.columns() : 0);
  for (uint64_t v = 0; v < features.rows(); v += step) {
    if (features.is_dense()) features.copy_row(static_cast<NodeId>(v), dense.data());
    const std::span<const float> row =
        features.is_dense() ? std::span<const float>(dense) : features.row_values(static_cast<NodeId>(v));
    if (std::any_of(row.begin(), row.end(), [](float value) { return value < 0; })) return true;
    features.release_rows(v, v + 1);
  }
  return false;
}

ColumnScaling measure_columns(const Dataset& data) {
  require_dense(data.features);
  const size_t columns = data.features.columns(),
               blocks = (data.num_nodes() + kStandardisedRows - 1) / kStandardisedRows;
  // Two passes, each a sum in double per block, added in order: exact enough and the same for any number of threads.
  const auto column_sums = [&](auto&& value) {
    std::vector<std::vector<double>> partial(blocks, std::vector<double>(columns));
    parallel_blocks(data.num_nodes(), kStandardisedRows, [&](size_t begin, size_t end) {
      std::vector<float> row(columns);
      for (size_t v = begin; v < end; ++v) {
        if (data.role(static_cast<NodeId>(v)) != Role::kTrain) continue;
        data.features.copy_row(static_cast<NodeId>(v), row.data());
        for (size_t c = 0; c < columns; ++c) partial[begin / kStandardisedRows][c] += value(row[c], c);
      }
      data.features.release_rows(begin, end);
    });
    std::vector<double> sums(columns);
    for (const auto& block_sums : partial)
      for (size_t c = 0; c < columns; ++c) sums[c] += block_sums[c];
    return sums;
  };
  const auto rows = static_cast<double>(data.split_sizes()[0]);
  if (rows == 0) throw Error("there are no training nodes to standardise on", "--standardise");
  std::vector<double> mean = column_sums([](float x, size_t) { return static_cast<double>(x); });
  for (double& m : mean) m /= rows;
  const std::vector<double> squares = column_sums([&](float x, size_t c) { return (x - mean[c]) * (x - mean[c]); });
  ColumnScaling scaling;
  for (size_t c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(squares[c] / rows);
    scaling.mean.push_back(static_cast<float>(mean[c]));
    scaling.scale.push_back(deviation > 0 ? static_cast<float>(1 / deviation) : 1);
  }
  return scaling;
}

FeatureMatrix scale_features(const Dataset& data, const ColumnScaling& scaling) {
  if (scaling.empty() && scaling.columns.empty())
    return scaling.rows ? data.features.with_normalised_rows() : data.features;
  require_dense(data.features);
  const size_t nodes = data.num_nodes(), width = data.features.columns();
  const size_t columns = scaling.columns.empty() ? width : scaling.columns.size();
  if (!scaling.empty() && columns != scaling.mean.size())
    throw Error(fmt::format("has {} feature columns, but the model was trained on {}", columns, scaling.mean.size()),
                data.path.string());
  Buffer<float> x(nodes * columns);
  parallel_blocks(nodes, kStandardisedRows, [&](size_t begin, size_t end) {
    std::vector<float> whole(width);
    for (size_t v = begin; v < end; ++v) {
      float* row = x.data() + v * columns;
      data.features.copy_row(static_cast<NodeId>(v), scaling.columns.empty() ? row : whole.data());
      for (size_t c = 0; c < scaling.columns.size(); ++c) row[c] = whole[scaling.columns[c]];
      scaling.apply(row);
      if (scaling.rows) divide_by_sum({row, columns});
    }
    data.features.release_rows(begin, end);
  });
  return FeatureMatrix::dense(std::move(x), static_cast<uint32_t>(columns));
}

PreparedFeatures standardise(const Dataset& data, const Normalisation& normalisation, const ColumnScaling& scaling) {
  FeatureMatrix x = scale_features(data, scaling);
  const size_t nodes = data.num_nodes(), columns = x.columns();
  Buffer<float> aggregated(nodes * columns);
  const NormalisedRows rows(data.graph, normalisation);
  parallel_blocks(nodes, kStandardisedRows, [&](size_t begin, size_t end) {
    NormalisedRows::SparseRows links;
    rows.fill(begin, end, links);
    kernels::aggregate(links.view, {x.dense32().data(), nodes, columns}, {0, end - begin},
                       {aggregated.data() + begin * columns, end - begin, columns});
    data.graph.release_rows(begin, end);  // the copies take all the memory that is planned
  });
  return {std::move(x), FeatureMatrix::dense(std::move(aggregated), static_cast<uint32_t>(columns))};
}

TargetScaling measure_target(const Dataset& data) {
  double sum = 0, squares = 0, count = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.is_trained_on(v)) {
      sum += data.labels.value_of(v);
      ++count;
    }
  TargetScaling target;
  target.mean = sum / count;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.is_trained_on(v)) squares += std::pow(data.labels.value_of(v) - target.mean, 2);
  if (squares > 0) target.scale = std::sqrt(squares / count);
  return target;
}

}  // namespace cgcn
