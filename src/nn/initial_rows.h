// H_0 in a step of GCNII, which every hidden convolution takes a share of (Chen et al., 2020), and the gradient that
// they give back. Both are float32: a gradient is the sum of all layers'.
//
//   C_left = (1-α)·A·h + α·H_0 = (1-α)·(A·h + S),  S = α / (1-α)·H_0
//   dH_0 = α·Σ_l dC_left
#pragma once

#include <algorithm>

#include "kernels/parallel.h"
#include "kernels/row_buffer.h"
#include "nn/layer.h"

namespace cgcn {

class InitialRows {
 public:
  explicit InitialRows(float share) : share_(share) {}
  bool on() const { return share_ > 0; }
  float share() const { return share_; }  // α

  void plan(Workspace& workspace, size_t rows, size_t columns) {
    if (!on()) return;
    columns_ = columns;
    scaled_ = workspace.take_matrix(rows, columns);
    gradient_ = workspace.take_matrix(rows, columns);
  }
  void keep(kernels::ConstRows h0) {
    if (!on()) return;
    rows_ = h0.rows;
    const float factor = share_ / (1 - share_);
    const kernels::Matrix to = kernels::padded(scaled_, rows_, columns_);
    h0.visit([&](auto from) {
      kernels::parallel_rows(rows_, kPassRows, [&](kernels::RowRange rows) {
        for (size_t r = rows.begin; r < rows.end; ++r) {
          for (size_t c = 0; c < columns_; ++c) to.row(r)[c] = factor * to_float(from.row(r)[c]);
          std::fill_n(gradient().row(r), columns_, 0.0f);
        }
      });
    });
  }
  kernels::ConstMatrix scaled(size_t rows) const { return kernels::padded(scaled_, rows, columns_); }  // S
  // C_left of rows of inference, which are given A·h and H_0, all of one precision.
  kernels::ConstRows mix(kernels::ConstRows aggregated, kernels::ConstRows h0, kernels::RowBuffer& memory) const {
    memory = kernels::RowBuffer(aggregated.rows, aggregated.columns, aggregated.precision);
    if (aggregated.is_half())
      mix(aggregated.halves(), h0.halves(), memory.rows().halves());
    else
      mix(aggregated.floats(), h0.floats(), memory.rows().floats());
    return memory.rows();
  }
  // dH_0 takes its share of dC_left, which becomes that of A·h.
  void take_gradient(kernels::Rows left_rows) const {
    left_rows.visit([&](auto left) {
      kernels::parallel_rows(left.rows, kPassRows, [&](kernels::RowRange rows) {
        for (size_t r = rows.begin; r < rows.end; ++r)
          for (size_t c = 0; c < columns_; ++c) {
            const float value = to_float(left.row(r)[c]);
            gradient().row(r)[c] += share_ * value;
            kernels::store(value * (1 - share_), left.row(r)[c]);
          }
      });
    });
  }
  void add_gradient_to(kernels::Rows h0_gradient) const {
    if (!on()) return;
    h0_gradient.visit([&](auto to) {
      kernels::parallel_rows(to.rows, kPassRows, [&](kernels::RowRange rows) {
        for (size_t r = rows.begin; r < rows.end; ++r)
          for (size_t c = 0; c < columns_; ++c)
            kernels::store(to_float(to.row(r)[c]) + gradient().row(r)[c], to.row(r)[c]);
      });
    });
  }

 private:
  template <class T>
  void mix(kernels::MatrixView<const T> aggregated, kernels::MatrixView<const T> h0,
           kernels::MatrixView<T> left) const {
    for (size_t r = 0; r < left.rows; ++r)
      for (size_t c = 0; c < left.columns; ++c)
        kernels::store((1 - share_) * to_float(aggregated.row(r)[c]) + share_ * to_float(h0.row(r)[c]), left.row(r)[c]);
  }
  kernels::Matrix gradient() const { return kernels::padded(gradient_, rows_, columns_); }

  float share_;
  size_t rows_ = 0, columns_ = 0;
  float *scaled_ = nullptr, *gradient_ = nullptr;
};

}  // namespace cgcn
