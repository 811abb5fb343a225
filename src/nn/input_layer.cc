#include "nn/input_layer.h"

#include <algorithm>

#include "common/threads.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::DropoutMask;
using kernels::Matrix;
using kernels::padded;
using kernels::RowRange;
using kernels::Tiles;

namespace {

void gather_part(const FeatureMatrix& features, const Step& step, uint32_t stream, RowRange rows,
                 const DropoutMask& mask, Matrix out) {
  if (step.dropout > 0) draw_dropout(step.dropout_key(stream), step.dropout, rows, {0, out.columns}, mask);
  const NodeId* ids = step.batch.inputs.data();
  if (features.kind() == FeatureMatrix::Kind::kDense32)
    gather_rows(features.dense32().data(), ids, rows, mask, out);
  else
    gather_rows(features.dense16().data(), ids, rows, mask, out);
}

}  // namespace

void forward_dense_input(const Layer& layer, const Step& step, const FeatureMatrix& x, const FeatureMatrix& aggregated,
                         LayerMemory& memory, Matrix next) {
  const size_t n = step.batch.inputs.size();
  const Matrix input = padded(memory.input, n, layer.fan_in()), z = padded(memory.output, n, layer.out);
  kernels::parallel_rows(n, kPassRows, [&](RowRange rows) {
    gather_part(aggregated, step, aggregated_stream(layer), rows, step.mask(memory.aggregated_bits, layer.in),
                input.columns_from(0, layer.in));
    if (layer.concat)
      gather_part(x, step, own_stream(layer), rows, step.mask(memory.own_bits, layer.in),
                  input.columns_from(layer.in, layer.fan_in()));
  });
  memory.widen_weight(layer);
  layer.multiply_all(input, memory.weight(layer), padded(memory.output, n, layer.wide_out()));
  layer.activate_all(z, {}, layer.norm(memory.mean, memory.inverse_deviation), next);
}

void backward_dense_input(const Layer& layer, const Step& step, LayerMemory& memory) {
  const size_t n = step.batch.inputs.size();
  const ConstMatrix input = padded(memory.input, n, layer.fan_in()), dz = padded(memory.output, n, layer.wide_out());
  backward_bias(layer, dz.columns_from(0, layer.out));
  const Matrix gradient = memory.gradient(layer);
  const Tiles tiles = Tiles::of_weights(gradient.rows, gradient.columns);
  kernels::parallel_parts(tiles.count(), [&](size_t i) {
    const auto [row, row_end] = tiles.rows(i);
    const auto [column, column_end] = tiles.columns(i);
    multiply_by_transpose_of(input.columns_from(row, row_end), dz.columns_from(column, column_end),
                             gradient.tile(row, row_end, column, column_end));
  });
  memory.narrow_gradient(layer);
}

namespace {

size_t row_entries(const FeatureMatrix& features, NodeId v) {
  return features.kind() == FeatureMatrix::Kind::kIdentity ? 1 : features.row_columns(v).size();
}

void write_row(const FeatureMatrix& features, NodeId v, uint32_t first_column, uint32_t* columns, float* values) {
  if (features.kind() == FeatureMatrix::Kind::kIdentity) {
    columns[0] = first_column + v;
    values[0] = 1;
    return;
  }
  const auto row_columns = features.row_columns(v);
  const auto row_values = features.row_values(v);
  for (size_t i = 0; i < row_columns.size(); ++i) {
    columns[i] = first_column + row_columns[i];
    values[i] = row_values[i];
  }
}

}  // namespace

void SparseInput::gather(const Layer& layer, const Step& step, const FeatureMatrix& x,
                         const FeatureMatrix& aggregated) {
  const auto inputs = step.batch.inputs;
  const size_t n = inputs.size();
  offsets_.reserve_discarding(n + 1);
  offsets_[0] = 0;
  for (size_t r = 0; r < n; ++r)
    offsets_[r + 1] = offsets_[r] + row_entries(aggregated, inputs[r]) + (layer.concat ? row_entries(x, inputs[r]) : 0);
  columns_.reserve_discarding(offsets_[n]);
  values_.reserve_discarding(offsets_[n]);
  bits_.reserve_discarding(offsets_[n] / 8 + 8 * (n + 2));
  parallel_blocks(n, kPassRows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const size_t first = offsets_[r], entries = offsets_[r + 1] - first;
      write_row(aggregated, inputs[r], 0, &columns_[first], &values_[first]);
      if (layer.concat) {
        const size_t second = first + row_entries(aggregated, inputs[r]);
        write_row(x, inputs[r], static_cast<uint32_t>(layer.in), &columns_[second], &values_[second]);
      }
      if (step.dropout == 0) continue;
      // A dropout column is the place of an entry in its row: what is zero needs no dropping.
      const DropoutMask mask{&bits_[first / 8 + 8 * r], 0, kernels::dropout_scale(step.dropout)};
      draw_dropout(step.dropout_key(aggregated_stream(layer)), step.dropout, {r, r + 1}, {0, entries}, mask);
      for (size_t i = 0; i < entries; ++i) values_[first + i] *= mask.keeps(r, i) ? mask.scale : 0;
    }
  });
  view_ = {static_cast<uint32_t>(n), static_cast<uint32_t>(layer.fan_in()), offsets_.data(), columns_.data(),
           values_.data()};
}

void SparseInput::transpose(size_t fan_in) {
  constexpr uint32_t kNone = UINT32_MAX;
  if (slots_.size() != fan_in) slots_.assign(fan_in, kNone);
  touched_.clear();
  const size_t entries = view_.num_entries();
  for (size_t i = 0; i < entries; ++i)
    if (uint32_t& slot = slots_[columns_[i]]; slot == kNone) {
      slot = 0;
      touched_.push_back(columns_[i]);
    }
  std::sort(touched_.begin(), touched_.end());
  for (size_t t = 0; t < touched_.size(); ++t) slots_[touched_[t]] = static_cast<uint32_t>(t);

  transposed_offsets_.reserve_discarding(touched_.size() + 2);
  std::fill_n(transposed_offsets_.data(), touched_.size() + 2, uint64_t{0});
  for (size_t i = 0; i < entries; ++i) ++transposed_offsets_[slots_[columns_[i]] + 2];
  for (size_t t = 2; t < touched_.size() + 2; ++t) transposed_offsets_[t] += transposed_offsets_[t - 1];
  transposed_columns_.reserve_discarding(entries);
  transposed_values_.reserve_discarding(entries);
  for (uint32_t r = 0; r < view_.rows; ++r)
    for (uint64_t i = offsets_[r]; i < offsets_[r + 1]; ++i) {
      const uint64_t place = transposed_offsets_[slots_[columns_[i]] + 1]++;
      transposed_columns_[place] = r;
      transposed_values_[place] = values_[i];
    }
  for (const uint32_t row : touched_) slots_[row] = kNone;
}

void SparseInput::backward(const Layer& layer, ConstMatrix z_gradient) {
  backward_bias(layer, z_gradient);
  const Matrix gradient = layer.gradients.weight;
  parallel_blocks(touched_.size(), kPassRows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) std::fill_n(gradient.row(touched_[t]), layer.out, 0.0f);
  });
  transpose(layer.fan_in());
  parallel_blocks(touched_.size(), kPassRows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const SparseView row{1, view_.rows, &transposed_offsets_[t], transposed_columns_.data(),
                           transposed_values_.data()};
      kernels::aggregate(row, z_gradient, {0, 1}, {}, {}, Matrix(gradient.row(touched_[t]), 1, layer.out));
    }
  });
}

uint64_t SparseInput::bytes() const {
  return 8 * (offsets_.size() + transposed_offsets_.size()) + 4 * (columns_.size() + transposed_columns_.size()) +
         4 * (values_.size() + transposed_values_.size()) + bits_.size() + 4 * (slots_.size() + touched_.capacity());
}

void forward_sparse_input(const Layer& layer, const Step& step, const SparseInput& input, LayerMemory& memory,
                          Matrix next) {
  const size_t n = step.batch.inputs.size();
  const Matrix z = padded(memory.output, n, layer.out);
  parallel_blocks(n, kPassRows, [&](size_t begin, size_t end) {
    const float keep = layer.begin_tile(z.rows_from(begin, end), 0);
    kernels::aggregate(input.view(), layer.values.weight, {begin, end}, keep != 0 ? ConstMatrix(z) : ConstMatrix(), {},
                       z);
  });
  layer.activate_all(z, {}, layer.norm(memory.mean, memory.inverse_deviation), next);
}

}  // namespace cgcn
