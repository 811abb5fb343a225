#include "nn/layer.h"

#include <algorithm>

namespace cgcn {

float Layer::begin_rows(kernels::Matrix z) const {
  if (values.bias == nullptr) return 0;
  for (size_t r = 0; r < z.rows; ++r) std::copy_n(values.bias, z.columns, z.row(r));
  return 1;
}

void Layer::finish_rows(kernels::RowRange rows, kernels::ConstMatrix z, kernels::ConstMatrix own,
                        const kernels::LayerNorm& norm, kernels::Matrix out) const {
  if (!last) kernels::activate(rows, z, norm, residual ? own : kernels::ConstMatrix(), out);
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
                               Parameters& parameters) {
  std::vector<Layer> layers(options.layers);
  std::vector<Indices> indices;
  for (uint32_t i = 0; i < options.layers; ++i) {
    Layer& layer = layers[i];
    layer.number = i + 1;
    layer.last = layer.number == options.layers;
    layer.in = i == 0 ? shape.input_columns : options.hidden;
    layer.out = layer.last ? shape.num_classes : options.hidden;
    layer.concat = options.convolution == Convolution::kConcat;
    layer.residual = options.residual && i > 0 && !layer.last;
    indices.push_back(add_parameters(layer, options, parameters));
  }
  parameters.allocate();
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

void LayerMemory::reserve(const Layer& layer, size_t rows, bool dropout, bool sparse) {
  output.reserve_discarding(rows * layer.out);
  if (layer.values.scale != nullptr) {
    mean.reserve_discarding(rows);
    inverse_deviation.reserve_discarding(rows);
  }
  if (sparse) return;
  input.reserve_discarding(rows * layer.fan_in());
  if (dropout) {
    const size_t bytes = kernels::DropoutMask::buffer_bytes(rows, layer.in);
    aggregated_bits.reserve_discarding(bytes);
    if (layer.concat) own_bits.reserve_discarding(bytes);
  }
}

uint64_t LayerMemory::bytes() const {
  return 4 * (input.size() + output.size() + mean.size() + inverse_deviation.size()) + aggregated_bits.size() +
         own_bits.size();
}

void StepMemory::reserve(const std::vector<Layer>& layers, size_t rows) {
  size_t hidden = 0, fan_in = 0, out = 0;
  for (const Layer& layer : layers) {
    if (!layer.last) hidden = layer.out;
    if (layer.number > 1) fan_in = layer.fan_in();
    out = std::max(out, layer.out);
  }
  for (auto& buffer : embeddings) buffer.reserve_discarding(rows * hidden);
  input_gradient.reserve_discarding(rows * fan_in);
  embedding_gradient.reserve_discarding(rows * hidden);
  if (layers.size() > 1) projection.reserve_discarding(rows * out);
  column_sums.reserve_discarding((rows / kPassRows + 2) * 2 * out);  // RowBlocks gives two for few rows
}

uint64_t StepMemory::bytes() const {
  return 4 * (embeddings[0].size() + embeddings[1].size() + input_gradient.size() + embedding_gradient.size() +
              projection.size() + column_sums.size());
}

}  // namespace cgcn
