// One convolution: its place in the network, its parameters, and the memory of its forward pass that backward needs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "batch/batch.h"
#include "common/buffer.h"
#include "kernels/activation.h"
#include "kernels/dropout.h"
#include "kernels/matrix.h"
#include "nn/model_options.h"
#include "nn/parameters.h"

namespace cgcn {

// Views into the flat buffers; an absent bias or norm is null.
struct LayerParameters {
  kernels::Matrix weight;  // rows 0 … in: for the aggregated part; the rest, where concatenated: for the own part
  float *bias = nullptr, *scale = nullptr, *offset = nullptr;
};

struct Layer {
  uint32_t number = 0;  // 1 … L
  size_t in = 0, out = 0;
  bool concat = false, last = false, residual = false;
  LayerParameters values, gradients;

  size_t fan_in() const { return concat ? 2 * in : in; }
  kernels::ConstMatrix aggregated_weight() const { return values.weight.rows_from(0, in); }
  kernels::ConstMatrix own_weight() const { return values.weight.rows_from(in, fan_in()); }
  // Statistics null: the way back is not needed.
  kernels::LayerNorm norm(float* mean = nullptr, float* inverse_deviation = nullptr) const {
    return {values.scale, values.offset, mean, inverse_deviation};
  }
  // Where a bias comes first, z begins as the bias and the products are added. Returns what multiply() shall keep of z.
  float begin_rows(kernels::Matrix z) const;
  // z + H_{l-1} → H_l; z is the result where the layer is the last.
  void finish_rows(kernels::RowRange rows, kernels::ConstMatrix z, kernels::ConstMatrix own,
                   const kernels::LayerNorm& norm, kernels::Matrix out) const;
};

// Adds every parameter of the network, fills in the views, and initialises the weights.
std::vector<Layer> make_layers(const ModelOptions& options, const ModelShape& shape, uint64_t seed,
                               Parameters& parameters);

// What forward leaves for backward.
struct LayerMemory {
  Buffer<float> input;   // D([N(A)·H, H]), rows of fan_in; or H itself where the product came first
  Buffer<float> output;  // z, which backward replaces by its gradient
  Buffer<float> mean, inverse_deviation;
  Buffer<uint8_t> aggregated_bits, own_bits;
  bool projected_first = false;  // in the last forward pass

  // sparse: the input layer on sparse features, which keeps its input elsewhere.
  void reserve(const Layer& layer, size_t rows, bool dropout, bool sparse);
  uint64_t bytes() const;
};

// What all layers share, one step at a time.
struct StepMemory {
  std::array<Buffer<float>, 2> embeddings;  // H_{l-1} and H_l
  Buffer<float> input_gradient;             // of D([N(A)·H, H]); or of the projection
  Buffer<float> embedding_gradient;         // of H_l, replaced in place by that of H_{l-1}
  Buffer<float> projection;                 // H·W where the product comes first
  Buffer<float> column_sums;                // a pair of rows per block: gradients of scale and offset, or of a bias

  void reserve(const std::vector<Layer>& layers, size_t rows);
  uint64_t bytes() const;
};

// Rows of row passes that are not fused with a product; fixed, so that sums over blocks do not depend on threads.
inline constexpr size_t kPassRows = 64;

}  // namespace cgcn
