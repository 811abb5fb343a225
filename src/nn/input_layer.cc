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

void gather_block(const FeatureMatrix& features, const Batch& batch, RowRange rows, const DropoutMask& mask,
                  Matrix out) {
  const NodeId* ids = batch.inputs.data();
  if (features.kind() == FeatureMatrix::Kind::kDense32)
    gather_rows(features.dense32().data(), ids, rows, mask, out);
  else
    gather_rows(features.dense16().data(), ids, rows, mask, out);
}

void gather_part(const FeatureMatrix& features, const Step& step, uint32_t stream, RowRange rows,
                 const DropoutMask& mask, Matrix out) {
  if (step.dropout > 0) draw_dropout(step.dropout_key(stream), step.dropout, rows, {0, out.columns}, mask);
  gather_block(features, step.batch, rows, mask, out);
}

}  // namespace

void gather_features(const FeatureMatrix& x, const Batch& batch, Matrix out) {
  kernels::parallel_rows(out.rows, kPassRows, [&](RowRange rows) { gather_block(x, batch, rows, {}, out); });
}

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
  const size_t n = step.batch.rows_of_layer(1);
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
  const bool stacked = step.batch.input_block != nullptr;
  const size_t sources = inputs.size(), targets = step.batch.rows_of_layer(1);
  const size_t n = stacked && layer.concat ? sources + targets : sources;
  // Row r is a node's row at W's left rows, at its right rows, or one beside the other.
  const auto node = [&](size_t r) { return inputs[r < sources ? r : r - sources]; };
  const auto left = [&](size_t r) { return r < sources ? row_entries(stacked ? x : aggregated, node(r)) : 0; };
  const auto right = [&](size_t r) { return layer.concat && (!stacked || r >= sources) ? row_entries(x, node(r)) : 0; };
  offsets_.reserve_discarding(n + 1);
  offsets_[0] = 0;
  for (size_t r = 0; r < n; ++r) offsets_[r + 1] = offsets_[r] + left(r) + right(r);
  columns_.reserve_discarding(offsets_[n]);
  values_.reserve_discarding(offsets_[n]);
  bits_.reserve_discarding(offsets_[n] / 8 + 8 * (n + 2));
  parallel_blocks(n, kPassRows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const size_t first = offsets_[r], second = first + left(r), entries = offsets_[r + 1] - first;
      if (left(r) > 0) write_row(stacked ? x : aggregated, node(r), 0, &columns_[first], &values_[first]);
      if (right(r) > 0) write_row(x, node(r), static_cast<uint32_t>(layer.in), &columns_[second], &values_[second]);
      if (step.dropout == 0) continue;
      // A dropout column is the place of an entry in its row: what is zero needs no dropping. A node that comes twice
      // is dropped alike.
      const DropoutMask mask{&bits_[first / 8 + 8 * r], 0, kernels::dropout_scale(step.dropout)};
      const size_t row = r < sources ? r : r - sources;
      draw_dropout(step.dropout_key(aggregated_stream(layer)), step.dropout, {row, row + 1}, {0, entries}, mask);
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

Matrix SparseInput::product(const Layer& layer) {
  product_.reserve_discarding(view_.rows * kernels::padded_stride(layer.out));
  return padded(product_.data(), view_.rows, layer.out);
}

void SparseInput::backward(const Layer& layer, const Step& step, ConstMatrix z_gradient) {
  backward_bias(layer, z_gradient);
  if (step.batch.input_block == nullptr) return backward_weight(layer, z_gradient);
  const SparseView& back = step.batch.input_block->backward;
  const Matrix gradient = product(layer);
  aggregate_all(back, z_gradient, {}, gradient.rows_from(0, back.rows));
  if (layer.concat)
    for (size_t r = 0; r < z_gradient.rows; ++r) std::copy_n(z_gradient.row(r), layer.out, gradient.row(back.rows + r));
  backward_weight(layer, gradient);
}

void SparseInput::backward_weight(const Layer& layer, ConstMatrix z_gradient) {
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
         4 * (values_.size() + transposed_values_.size() + product_.size()) + bits_.size() +
         4 * (slots_.size() + touched_.capacity());
}

void forward_sparse_input(const Layer& layer, const Step& step, SparseInput& input, LayerMemory& memory, Matrix next) {
  const size_t n = step.batch.rows_of_layer(1);
  const Matrix z = padded(memory.output, n, layer.out);
  const auto multiply_rows = [&](Matrix out, size_t begin, size_t end, float keep) {
    kernels::aggregate(input.view(), layer.values.weight, {begin, end}, keep != 0 ? ConstMatrix(out) : ConstMatrix(),
                       {}, out);
  };
  if (step.batch.input_block == nullptr) {
    parallel_blocks(n, kPassRows, [&](size_t begin, size_t end) {
      multiply_rows(z, begin, end, layer.begin_tile(z.rows_from(begin, end), 0));
    });
  } else {
    const SparseView& a = step.batch.input_block->forward;
    const Matrix product = input.product(layer);
    parallel_blocks(product.rows, kPassRows, [&](size_t begin, size_t end) { multiply_rows(product, begin, end, 0); });
    const ConstMatrix own = product.rows_from(product.rows - (layer.concat ? n : 0), product.rows);
    aggregate_all(a, product.rows_from(0, a.columns), own, z);
    if (const float* bias = layer.values.bias)
      for (size_t r = 0; r < n; ++r)
        for (size_t c = 0; c < layer.out; ++c) z.row(r)[c] += bias[c];
  }
  layer.activate_all(z, {}, layer.norm(memory.mean, memory.inverse_deviation), next);
}

}  // namespace cgcn
