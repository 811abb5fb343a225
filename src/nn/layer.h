// One convolution: its place in the network, its parameters, and the memory of its forward pass that backward needs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
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

  bool may_project_first() const { return number > 1 && out < in; }
  size_t fan_in() const { return concat ? 2 * in : in; }
  // OpenBLAS is up to twice as fast on whole registers: products have columns of zeros up to a multiple of 16.
  size_t wide_out() const { return (out + 15) / 16 * 16; }
  kernels::ConstMatrix aggregated_weight() const { return values.weight.rows_from(0, in); }
  kernels::ConstMatrix own_weight() const { return values.weight.rows_from(in, fan_in()); }
  // Statistics null: the way back is not needed.
  kernels::LayerNorm norm(float* mean = nullptr, float* inverse_deviation = nullptr) const {
    return {values.scale, values.offset, mean, inverse_deviation};
  }
  // Where a bias comes first, a tile of z begins as the bias and the products are added. Returns what multiply() shall
  // keep of it.
  float begin_tile(kernels::Matrix z_tile, size_t first_column) const;
  // z = input·W + b, then H = act(z) [+ own]; all rows, on all threads. weight is W, widened or not; next is unused by
  // the last layer.
  void multiply_all(kernels::ConstMatrix input, kernels::ConstMatrix weight, kernels::Matrix z) const;
  void activate_all(kernels::ConstMatrix z, kernels::ConstMatrix own, const kernels::LayerNorm& norm,
                    kernels::Matrix next) const;
};

class Head;

// Adds every parameter of the network, fills in the views, and initialises the weights.
std::vector<Layer> make_layers(const ModelOptions& options, const ModelShape& shape, uint64_t seed,
                               Parameters& parameters, Head& head);

// One block of memory for everything that a step needs: laid out twice, first to learn its size, then to place it.
class Workspace {
 public:
  template <class T>
  T* take(size_t size) {
    constexpr size_t kLine = Buffer<char>::kAlignment;
    const size_t at = taken_;
    taken_ += (size * sizeof(T) + kLine - 1) / kLine * kLine;
    return memory_.empty() ? nullptr : reinterpret_cast<T*>(memory_.data() + at);
  }
  float* take_matrix(size_t rows, size_t columns) { return take<float>(rows * kernels::padded_stride(columns)); }
  void allocate();  // between the two
  uint64_t bytes() const { return memory_.size(); }

 private:
  Buffer<char> memory_;
  size_t taken_ = 0;
};

// What forward leaves for backward. Matrices are padded (kernels::padded).
struct LayerMemory {
  float* input = nullptr;   // D([N(A)·H, H]), rows of fan_in; or H itself where the product came first
  float* output = nullptr;  // z, which backward replaces by its gradient
  float *mean = nullptr, *inverse_deviation = nullptr;
  uint8_t *aggregated_bits = nullptr, *own_bits = nullptr;  // dropout after aggregation
  uint8_t* source_bits = nullptr;                           // before it
  float *wide_weight = nullptr, *wide_gradient = nullptr;   // fan_in × wide_out; null where W is as wide itself
  bool projected_first = false;                             // in the last forward pass

  // sparse: the input layer on sparse features, which keeps its input elsewhere.
  // sources: rows of the layer below, which lie here where the product comes first.
  void place(Workspace& workspace, const Layer& layer, size_t rows, size_t sources, const ModelOptions& options,
             bool sparse);

  // W and its gradient as the products take them: W itself, or a copy with columns of zeros. A step fills the copy
  // before its first use of weight() and takes the gradient over after its last of gradient().
  void widen_weight(const Layer& layer) const;
  kernels::ConstMatrix weight(const Layer& layer) const;
  kernels::Matrix gradient(const Layer& layer) const;
  void narrow_gradient(const Layer& layer) const;
};

// What all layers share, one step at a time.
struct StepMemory {
  std::array<float*, 2> embeddings{};   // H_{l-1} and H_l
  float* input_gradient = nullptr;      // of D([N(A)·H, H])
  float* embedding_gradient = nullptr;  // of H_l, replaced in place by that of H_{l-1}
  float* projection = nullptr;          // H·W where the product comes first, then its gradient
  float* column_sums = nullptr;         // a pair of rows per block: gradients of scale and offset

  // rows: of the input, of layer 1, …, of layer L.
  void place(Workspace& workspace, const std::vector<Layer>& layers, std::span<const size_t> rows);
};

// Rows of row passes that are not fused with a product; fixed, so that sums over blocks do not depend on threads.
inline constexpr size_t kPassRows = 64;

}  // namespace cgcn
