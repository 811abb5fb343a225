// z = C·W + b, a component of layers: the weight and the bias, the rows C of a step, and the way back to the weight.
//
// In bfloat16 the products take C and dz as they are, W and Wᵀ rounded and packed once a step, and dz packed for dW. z
// and dW are float32.
#pragma once

#include <string>

#include "kernels/bfloat16_gemm.h"
#include "kernels/gemm.h"
#include "nn/parameters.h"
#include "nn/workspace.h"

namespace cgcn {

class Linear {
 public:
  Linear(const std::string& layer, size_t in, size_t out, bool bias, Parameters& parameters);

  size_t in() const { return in_; }
  size_t out() const { return out_; }
  kernels::ConstMatrix weight() const { return weight_.value(); }
  kernels::Matrix weight_gradient() const { return weight_.gradient(); }
  const float* bias() const { return bias_.value().data; }

  // C, of so many rows or bytes, whichever is more. parts: of C's columns, for backward_input(); 0: that is not called.
  void plan(Workspace& workspace, size_t rows, size_t bytes = 0, size_t parts = 1);
  kernels::Rows input(size_t rows) const { return kernels::padded(input_, rows, in_, workspace_->precision()); }
  void* input_memory() const { return input_; }

  // z = C·W + b for all rows of z, on all threads.
  void forward(kernels::Matrix z) const;
  // A gradient at z that comes from no activation as the products take it: in bfloat16 rounded in its place.
  kernels::Rows ready(kernels::Rows z_gradient) const;
  // The gradients from such a dz, with the C of forward.
  void backward(kernels::ConstRows z_gradient) const;
  void backward_bias(kernels::ConstRows z_gradient) const;

  // The same in steps, for a layer that has other products to compute in the same parallel loop: begin_backward(), then
  // dW tile by tile and dC in tiles whose columns begin at a multiple of column_unit() in their part.
  void begin_backward(kernels::ConstRows z_gradient) const;
  kernels::Tiles weight_tiles() const;
  void backward_tile(size_t tile, kernels::ConstRows z_gradient) const;
  // These rows of dz times these columns of Wᵀ, of a part of C's columns.
  void backward_input(kernels::ConstRows z_gradient_rows, size_t part, kernels::RowRange columns,
                      kernels::Rows to) const;
  size_t column_unit() const { return is_half() ? kernels::PackedMatrix::kUnit : 16; }

  // Inference in bfloat16: W rounded and packed once, and z = C·W + b of rows by it on the calling thread.
  size_t packed_elements() const { return kernels::PackedMatrix::elements(in_, out_); }
  void pack(BFloat16* packed) const { pack_weight(weight(), packed); }
  void infer(kernels::ConstHalfMatrix c, const BFloat16* packed, kernels::Matrix z) const;
  static void pack_weight(kernels::ConstMatrix weight, BFloat16* packed);

  // A tile of z, of which this is the first product: rows times columns of W from `column` on, plus the bias.
  void multiply_first(kernels::ConstMatrix rows, kernels::ConstMatrix w, size_t column, kernels::Matrix z_tile) const;
  // For rows that do not begin with a product: a tile of z begins as the bias, if there is one. Returns what multiply()
  // keeps of the tile.
  float begin_tile(kernels::Matrix z_tile, size_t first_column) const;

 private:
  bool is_half() const { return workspace_->precision() == kernels::Precision::kBFloat16; }
  void forward_half(kernels::Matrix z) const;
  size_t part_columns() const { return parts_ > 0 ? in_ / parts_ : 0; }
  // In the workspace's packed(): W; or on the way back Wᵀ part after part, then dz.
  BFloat16* packed_transposed(size_t part) const {
    return workspace_->packed() + part * kernels::PackedMatrix::elements(out_, part_columns());
  }
  BFloat16* packed_gradient() const { return packed_transposed(parts_); }

  size_t in_, out_, parts_ = 1;
  OwnParameter weight_, bias_;
  Workspace* workspace_ = nullptr;
  void* input_ = nullptr;
};

}  // namespace cgcn
