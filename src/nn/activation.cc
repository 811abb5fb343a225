#include "nn/activation.h"

#include <algorithm>
#include <cmath>

#include "kernels/dropout.h"
#include "kernels/parallel.h"
#include "nn/layer.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::Matrix;
using kernels::RowRange;
using kernels::Rows;

namespace {

size_t blocks_of(size_t rows) { return (rows + kPassRows - 1) / kPassRows; }

}  // namespace

Activation::Activation(const std::string& layer, size_t columns, NormKind kind, Parameters& parameters)
    : columns_(columns) {
  if (kind == NormKind::kNone) return;
  scale_ = OwnParameter(parameters, layer + ".norm.scale", 1, columns, Initial::kOne);
  offset_ = OwnParameter(parameters, layer + ".norm.offset", 1, columns, Initial::kZero);
  if (kind != NormKind::kBatch) return;
  running_mean_ =
      OwnParameter(parameters, layer + ".norm.running_mean", 1, columns, Initial::kZero, ParameterKind::kStatistic);
  running_variance_ =
      OwnParameter(parameters, layer + ".norm.running_variance", 1, columns, Initial::kOne, ParameterKind::kStatistic);
}

void Activation::plan(Workspace& workspace, size_t rows) {
  if (!on()) return;
  workspace_ = &workspace;
  z_ = workspace.take_matrix(rows, columns_);
  mean_ = workspace.take<float>(is_batch_norm() ? columns_ : rows);
  inverse_deviation_ = workspace.take<float>(is_batch_norm() ? columns_ : rows);
  workspace.share_scratch(2 * blocks_of(rows) * columns_ * sizeof(float));
}

void Activation::apply(const Step* step, ConstMatrix z, ConstRows residual, Rows out) const {
  if (!on()) {
    if (out.data != z.data) kernels::copy_rows(z, out);
    return;
  }
  if (is_batch_norm()) {
    if (step != nullptr && step->training) {
      measure_batch(z);
      return activate_batch(z, batch_norm(mean_, inverse_deviation_), residual, out);
    }
    Buffer<float> inverse(columns_);
    const float* variance = running_variance_.value().data;
    for (size_t c = 0; c < columns_; ++c) inverse[c] = 1 / std::sqrt(variance[c] + kernels::kBatchNormEpsilon);
    return activate_batch(z, batch_norm(running_mean_.value().data, inverse.data()), residual, out);
  }
  const kernels::LayerNorm norm =
      step != nullptr ? this->norm(mean_, inverse_deviation_) : this->norm(nullptr, nullptr);
  kernels::parallel_rows(out.rows, kPassRows, [&](RowRange rows) { kernels::activate(rows, z, norm, residual, out); });
}

// Every block of rows has its own column sums, which are added in the order of the blocks.
template <class AddBlock>
void Activation::sum_blocks(size_t rows, size_t sums_per_block, AddBlock&& add_block,
                            std::initializer_list<float*> totals) const {
  const Matrix sums(static_cast<float*>(workspace_->scratch()), sums_per_block * blocks_of(rows), columns_);
  kernels::parallel_rows(rows, kPassRows, [&](RowRange range) {
    float* first = sums.row(sums_per_block * (range.begin / kPassRows));
    std::fill_n(first, sums_per_block * columns_, 0.0f);
    add_block(range, first);
  });
  size_t place = 0;
  for (float* total : totals) {
    std::fill_n(total, columns_, 0.0f);
    for (size_t row = place; row < sums.rows; row += sums_per_block)
      kernels::add_column_sums({row, row + 1}, sums, total);
    ++place;
  }
}

// The mean first, then the squared distances from it.
void Activation::measure_batch(ConstMatrix z) const {
  const auto share = static_cast<float>(1.0 / static_cast<double>(std::max<size_t>(1, z.rows)));
  float *mean = running_mean_.gradient().data, *variance = running_variance_.gradient().data;
  sum_blocks(z.rows, 1, [&](RowRange rows, float* sums) { kernels::add_column_sums(rows, z, sums); }, {mean});
  for (size_t c = 0; c < columns_; ++c) mean_[c] = mean[c] *= share;
  sum_blocks(z.rows, 1, [&](RowRange rows, float* sums) { kernels::add_column_squares(rows, z, mean_, sums); },
             {variance});
  for (size_t c = 0; c < columns_; ++c)
    inverse_deviation_[c] = 1 / std::sqrt((variance[c] *= share) + kernels::kBatchNormEpsilon);
}

void Activation::activate_batch(ConstMatrix z, const kernels::BatchNorm& norm, ConstRows residual, Rows out) const {
  kernels::parallel_rows(z.rows, kPassRows,
                         [&](RowRange rows) { kernels::normalise_columns(rows, z, norm, residual, out); });
}

Rows Activation::backward(ConstRows output_gradient) const {
  const Matrix z = input(output_gradient.rows);
  const Rows dz = output_gradient.is_half() ? Rows(halves_of(z)) : Rows(z);
  if (is_batch_norm()) {
    const kernels::BatchNorm norm = batch_norm(mean_, inverse_deviation_);
    float *scale = scale_.gradient().data, *offset = offset_.gradient().data;
    sum_blocks(z.rows, 2,
               [&](RowRange rows, float* sums) {
                 kernels::add_norm_gradients(rows, output_gradient, norm, z, sums, sums + columns_);
               },
               {scale, offset});
    kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
      kernels::normalise_columns_backward(rows, output_gradient, norm, scale, offset, z, dz);
    });
    return dz;
  }
  const kernels::LayerNorm norm = this->norm(mean_, inverse_deviation_);
  if (!norm.on()) {
    kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
      activate_backward(rows, output_gradient, norm, z, dz, nullptr, nullptr);
    });
    return dz;
  }
  sum_blocks(
      z.rows, 2,
      [&](RowRange rows, float* sums) { activate_backward(rows, output_gradient, norm, z, dz, sums, sums + columns_); },
      {scale_.gradient().data, offset_.gradient().data});
  return dz;
}

}  // namespace cgcn
