#include "nn/linear.h"

#include <algorithm>

#include "common/threads.h"
#include "kernels/activation.h"
#include "kernels/parallel.h"
#include "nn/layer.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::RowRange;
using kernels::Tiles;

Linear::Linear(const std::string& layer, size_t in, size_t out, bool bias, Parameters& parameters)
    : in_(in), out_(out), weight_(parameters, layer + ".weight", in, out, Initial::kGlorot) {
  if (bias) bias_ = OwnParameter(parameters, layer + ".bias", 1, out, Initial::kZero);
}

void Linear::plan(Workspace& workspace, size_t rows, size_t floats) {
  input_ = workspace.take<float>(std::max(rows * kernels::padded_stride(in_), floats));
  if (out_ == wide_out()) return;
  wide_weight_ = workspace.take<float>(in_ * wide_out());
  wide_gradient_ = workspace.take<float>(in_ * wide_out());
}

ConstMatrix Linear::wide(ConstMatrix z_gradient) const {
  return {z_gradient.data, z_gradient.rows, wide_out(), z_gradient.stride};
}

ConstMatrix Linear::wide_weight() const {
  return wide_weight_ == nullptr ? weight() : ConstMatrix(wide_weight_, in_, wide_out());
}

Matrix Linear::wide_gradient() const {
  return wide_gradient_ == nullptr ? weight_gradient() : Matrix(wide_gradient_, in_, wide_out());
}

void Linear::forward(Matrix z) const {
  if (wide_weight_ != nullptr) {
    const Matrix to(wide_weight_, in_, wide_out());
    kernels::parallel_rows(in_, kPassRows, [&](RowRange rows) {
      for (size_t r = rows.begin; r < rows.end; ++r) {
        std::copy_n(weight().row(r), out_, to.row(r));
        std::fill_n(to.row(r) + out_, wide_out() - out_, 0.0f);
      }
    });
  }
  const Matrix product(z.data, z.rows, wide_out(), z.stride);
  const ConstMatrix c = input(z.rows), w = wide_weight();
  kernels::parallel_product(product, [&](RowRange rows, size_t column, Matrix tile) {
    multiply(c.rows_from(rows.begin, rows.end), w.columns_from(column, column + tile.columns), tile,
             begin_tile(tile, column));
  });
}

float Linear::begin_tile(Matrix z_tile, size_t first_column) const {
  if (bias() == nullptr) return 0;
  const size_t count = std::min(z_tile.columns, out_ - std::min(out_, first_column));
  for (size_t r = 0; r < z_tile.rows; ++r) {
    std::copy_n(bias() + first_column, count, z_tile.row(r));
    std::fill_n(z_tile.row(r) + count, z_tile.columns - count, 0.0f);
  }
  return 1;
}

void Linear::clear_padding(Matrix z_gradient) const {
  if (out_ == wide_out()) return;
  kernels::parallel_rows(z_gradient.rows, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) std::fill_n(z_gradient.row(r) + out_, wide_out() - out_, 0.0f);
  });
}

void Linear::backward(Matrix z_gradient) const {
  backward_bias(z_gradient);
  const ConstMatrix dz = wide(z_gradient);
  kernels::parallel_tiles(weight_tiles().count(), [&](size_t i) { backward_tile(i, dz); });
  end_backward();
}

void Linear::backward_bias(ConstMatrix z_gradient) const {
  if (!bias_.exists()) return;
  float* gradient = bias_.gradient().data;
  parallel_blocks(out_, 64, [&](size_t begin, size_t end) {
    std::fill_n(gradient + begin, end - begin, 0.0f);
    kernels::add_column_sums({0, z_gradient.rows}, z_gradient.columns_from(begin, end), gradient + begin);
  });
}

Tiles Linear::weight_tiles() const { return Tiles::of_weights(in_, wide_gradient().columns); }

void Linear::backward_tile(size_t tile, ConstMatrix wide_dz) const {
  const Tiles tiles = weight_tiles();
  const auto [row, row_end] = tiles.rows(tile);
  const auto [column, column_end] = tiles.columns(tile);
  multiply_by_transpose_of(ConstMatrix(input(wide_dz.rows)).columns_from(row, row_end),
                           wide_dz.columns_from(column, column_end),
                           wide_gradient().tile(row, row_end, column, column_end));
}

void Linear::end_backward() const {
  if (wide_gradient_ == nullptr) return;
  const ConstMatrix from = wide_gradient();
  kernels::parallel_rows(in_, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) std::copy_n(from.row(r), out_, weight_gradient().row(r));
  });
}

}  // namespace cgcn
