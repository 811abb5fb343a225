#include "nn/layer.h"

#include <algorithm>

#include "common/memory.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "nn/head.h"

namespace cgcn {

float Layer::begin_tile(kernels::Matrix z_tile, size_t first_column) const {
  if (values.bias == nullptr) return 0;
  const size_t count = std::min(z_tile.columns, out - std::min(out, first_column));
  for (size_t r = 0; r < z_tile.rows; ++r) {
    std::copy_n(values.bias + first_column, count, z_tile.row(r));
    std::fill_n(z_tile.row(r) + count, z_tile.columns - count, 0.0f);
  }
  return 1;
}

void Layer::multiply_all(kernels::ConstMatrix input, kernels::ConstMatrix weight, kernels::Matrix z) const {
  const auto tiles = kernels::Tiles::of_rows(z.rows, z.columns);
  kernels::parallel_parts(tiles.count(), [&](size_t i) {
    const auto [row, row_end] = tiles.rows(i);
    const auto [column, column_end] = tiles.columns(i);
    const kernels::Matrix tile = z.tile(row, row_end, column, column_end);
    multiply(input.rows_from(row, row_end), weight.columns_from(column, column_end), tile, begin_tile(tile, column));
  });
}

void Layer::activate_all(kernels::ConstMatrix z, kernels::ConstMatrix own, const kernels::LayerNorm& norm,
                         kernels::Matrix next) const {
  if (last) return;
  kernels::parallel_rows(z.rows, kPassRows, [&](kernels::RowRange rows) {
    kernels::activate(rows, z, norm, residual ? own : kernels::ConstMatrix(), next);
  });
}

namespace {

struct Indices {
  size_t weight, bias, scale, offset;
};

Indices add_parameters(const Layer& layer, const ModelOptions& options, Parameters& parameters) {
  const std::string prefix = fmt::format("layer{}.", layer.number);
  const auto out = static_cast<uint32_t>(layer.out);
  Indices indices{};
  indices.weight = parameters.add(prefix + "weight", static_cast<uint32_t>(layer.fan_in()), out);
  if (options.bias) indices.bias = parameters.add(prefix + "bias", 1, out);
  if (options.layer_norm && !layer.last) {
    indices.scale = parameters.add(prefix + "norm.scale", 1, out);
    indices.offset = parameters.add(prefix + "norm.offset", 1, out);
  }
  return indices;
}

}  // namespace

std::vector<Layer> make_layers(const ModelOptions& options, const ModelShape& shape, uint64_t seed,
                               Parameters& parameters, Head& head) {
  const bool dense_head = options.head == HeadKind::kDense;
  std::vector<Layer> layers(options.layers);
  std::vector<Indices> indices;
  for (uint32_t i = 0; i < options.layers; ++i) {
    Layer& layer = layers[i];
    layer.number = i + 1;
    layer.last = layer.number == options.layers;
    layer.in = i == 0 ? shape.input_columns : options.hidden;
    layer.out = layer.last && !dense_head ? shape.num_classes : options.hidden;
    layer.concat = options.convolution == Convolution::kConcat;
    layer.residual = options.residual && i > 0 && !layer.last;
    indices.push_back(add_parameters(layer, options, parameters));
  }
  if (dense_head) head.add_parameters(layers.back(), shape, parameters);
  parameters.allocate();
  if (dense_head) head.initialise(parameters, seed);
  for (uint32_t i = 0; i < options.layers; ++i) {
    Layer& layer = layers[i];
    layer.values.weight = parameters.value(indices[i].weight);
    layer.gradients.weight = parameters.gradient(indices[i].weight);
    parameters.initialise_glorot(indices[i].weight, seed);
    if (options.bias) {
      layer.values.bias = parameters.value(indices[i].bias).data;
      layer.gradients.bias = parameters.gradient(indices[i].bias).data;
    }
    if (options.layer_norm && !layer.last) {
      layer.values.scale = parameters.value(indices[i].scale).data;
      layer.values.offset = parameters.value(indices[i].offset).data;
      layer.gradients.scale = parameters.gradient(indices[i].scale).data;
      layer.gradients.offset = parameters.gradient(indices[i].offset).data;
      std::fill_n(layer.values.scale, layer.out, 1.0f);
    }
  }
  return layers;
}

void Workspace::allocate() {
  memory_ = Buffer<char>(taken_);
  prefer_huge_pages(memory_.data(), memory_.size());
  taken_ = 0;
}

void LayerMemory::place(Workspace& workspace, const Layer& layer, size_t rows, size_t sources,
                        const ModelOptions& options, bool sparse) {
  output = workspace.take_matrix(rows, layer.out);
  mean = workspace.take<float>(rows);
  inverse_deviation = workspace.take<float>(rows);
  if (sparse) return;
  input = workspace.take<float>(std::max(rows * kernels::padded_stride(layer.fan_in()),
                                         layer.may_project_first() ? sources * kernels::padded_stride(layer.in) : 0));
  if (layer.out != layer.wide_out()) {
    wide_weight = workspace.take<float>(layer.fan_in() * layer.wide_out());
    wide_gradient = workspace.take<float>(layer.fan_in() * layer.wide_out());
  }
  if (options.dropout == 0) return;
  if (options.dropout_place == DropoutPlace::kBefore)
    source_bits = workspace.take<uint8_t>(kernels::DropoutMask::buffer_bytes(sources, layer.in));
  const size_t bytes = kernels::DropoutMask::buffer_bytes(rows, layer.in);
  aggregated_bits = workspace.take<uint8_t>(bytes);
  if (layer.concat) own_bits = workspace.take<uint8_t>(bytes);
}

void LayerMemory::widen_weight(const Layer& layer) const {
  if (wide_weight == nullptr) return;
  const kernels::Matrix wide(wide_weight, layer.fan_in(), layer.wide_out());
  kernels::parallel_rows(wide.rows, kPassRows, [&](kernels::RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) {
      std::copy_n(layer.values.weight.row(r), layer.out, wide.row(r));
      std::fill_n(wide.row(r) + layer.out, layer.wide_out() - layer.out, 0.0f);
    }
  });
}

kernels::ConstMatrix LayerMemory::weight(const Layer& layer) const {
  if (wide_weight == nullptr) return layer.values.weight;
  return {wide_weight, layer.fan_in(), layer.wide_out()};
}

kernels::Matrix LayerMemory::gradient(const Layer& layer) const {
  if (wide_gradient == nullptr) return layer.gradients.weight;
  return {wide_gradient, layer.fan_in(), layer.wide_out()};
}

void LayerMemory::narrow_gradient(const Layer& layer) const {
  if (wide_gradient == nullptr) return;
  const kernels::Matrix wide = gradient(layer);
  kernels::parallel_rows(wide.rows, kPassRows, [&](kernels::RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) std::copy_n(wide.row(r), layer.out, layer.gradients.weight.row(r));
  });
}

void StepMemory::place(Workspace& workspace, const std::vector<Layer>& layers, std::span<const size_t> rows) {
  size_t hidden = 0, widest = 0, most = rows[1], gradients = 0;
  for (const Layer& layer : layers) {
    if (!layer.last) hidden = layer.out;
    widest = std::max(widest, layer.out);
    most = std::max(most, rows[layer.number]);
    if (layer.number == 1) continue;
    gradients = std::max(gradients, rows[layer.number] * kernels::padded_stride(layer.fan_in()));
    if (layer.may_project_first())
      gradients = std::max(gradients, rows[layer.number - 1] * kernels::padded_stride(layer.out));
  }
  column_sums = workspace.take<float>((most + kPassRows - 1) / kPassRows * 2 * widest);
  if (layers.size() == 1) return;
  for (float*& buffer : embeddings) buffer = workspace.take_matrix(most, hidden);
  embedding_gradient = workspace.take_matrix(most, hidden);
  input_gradient = workspace.take<float>(gradients);
  projection = input_gradient;  // a layer has one or the other
}

}  // namespace cgcn
