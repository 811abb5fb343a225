// z = C·W + b, a component of layers: the weight and the bias, the rows C of a step, and the way back to the weight.
#pragma once

#include <string>

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

  // C, of so many rows or so many floats, whichever is more.
  void plan(Workspace& workspace, size_t rows, size_t floats = 0);
  kernels::Matrix input(size_t rows) const { return kernels::padded(input_, rows, in_); }
  float* input_memory() const { return input_; }

  // z = C·W + b for all rows of z, on all threads. Columns of zeros follow it if the product is wider.
  void forward(kernels::Matrix z) const;
  // The gradients from dz, with the C of forward. dz is followed by columns of zeros as z was; clear_padding() puts
  // them behind a dz that lies elsewhere.
  void backward(kernels::Matrix z_gradient) const;
  void backward_bias(kernels::ConstMatrix z_gradient) const;
  void clear_padding(kernels::Matrix z_gradient) const;

  // The same in two steps, for a layer that has other products to compute in the same parallel loop: dW tile by tile,
  // then end_backward(). wide(dz) and wide_weight() are dz and W as the products take them.
  kernels::ConstMatrix wide(kernels::ConstMatrix z_gradient) const;
  kernels::ConstMatrix wide_weight() const;
  kernels::Tiles weight_tiles() const;
  void backward_tile(size_t tile, kernels::ConstMatrix wide_gradient) const;
  void end_backward() const;

  // A tile of z begins as the bias, if there is one, and products are added. Returns what multiply() keeps of the
  // tile.
  float begin_tile(kernels::Matrix z_tile, size_t first_column) const;

 private:
  kernels::Matrix wide_gradient() const;

  size_t in_, out_;
  OwnParameter weight_, bias_;
  float* input_ = nullptr;
  // OpenBLAS is up to twice as fast on whole registers: if W's columns are no multiple of 16, the products take
  // copies of it and of its gradient with columns of zeros.
  size_t wide_out() const { return (out_ + 15) / 16 * 16; }
  float *wide_weight_ = nullptr, *wide_gradient_ = nullptr;
};

}  // namespace cgcn
