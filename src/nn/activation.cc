#include "nn/activation.h"

#include <algorithm>

#include "kernels/parallel.h"
#include "nn/layer.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::RowRange;

namespace {

size_t blocks_of(size_t rows) { return (rows + kPassRows - 1) / kPassRows; }

}  // namespace

Activation::Activation(const std::string& layer, size_t columns, bool layer_norm, Parameters& parameters)
    : columns_(columns) {
  if (!layer_norm) return;
  scale_ = OwnParameter(parameters, layer + ".norm.scale", 1, columns, Initial::kOne);
  offset_ = OwnParameter(parameters, layer + ".norm.offset", 1, columns, Initial::kZero);
}

void Activation::plan(Workspace& workspace, size_t rows) {
  if (!on()) return;
  workspace_ = &workspace;
  z_ = workspace.take_matrix(rows, columns_);
  mean_ = workspace.take<float>(rows);
  inverse_deviation_ = workspace.take<float>(rows);
  workspace.share_scratch(2 * blocks_of(rows) * columns_);
}

void Activation::forward(ConstMatrix residual, Matrix out) const {
  kernels::parallel_rows(out.rows, kPassRows, [&](RowRange rows) {
    kernels::activate(rows, input(out.rows), norm(mean_, inverse_deviation_), residual, out);
  });
}

// Every block of rows has its own column sums, which are added in the order of the blocks.
Matrix Activation::backward(ConstMatrix output_gradient) const {
  const kernels::LayerNorm norm = this->norm(mean_, inverse_deviation_);
  const Matrix z = input(output_gradient.rows);
  const Matrix sums(workspace_->scratch(), 2 * blocks_of(z.rows), columns_);
  kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
    const size_t block = rows.begin / kPassRows;
    if (norm.on()) std::fill_n(sums.row(2 * block), 2 * columns_, 0.0f);
    activate_backward(rows, output_gradient, norm, z, sums.row(2 * block), sums.row(2 * block + 1));
  });
  if (!norm.on()) return z;
  const auto add_up = [&](const OwnParameter& parameter, size_t first) {
    float* gradient = parameter.gradient().data;
    std::fill_n(gradient, columns_, 0.0f);
    for (size_t row = first; row < sums.rows; row += 2) kernels::add_column_sums({row, row + 1}, sums, gradient);
  };
  add_up(scale_, 0);
  add_up(offset_, 1);
  return z;
}

void Activation::infer(ConstMatrix z, ConstMatrix residual, Matrix out) const {
  kernels::parallel_rows(z.rows, kPassRows,
                         [&](RowRange rows) { kernels::activate(rows, z, norm(nullptr, nullptr), residual, out); });
}

}  // namespace cgcn
