#include "nn/head.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::padded;
using kernels::RowRange;

namespace {

double dot(const float* a, const float* b, size_t size) {
  double sum = 0;
  for (size_t c = 0; c < size; ++c) sum += double{a[c]} * b[c];
  return sum;
}

// out = z / ‖z‖; returns 1 / ‖z‖. A row of zeros stays one.
float normalise_row(const float* z, size_t size, float* out) {
  constexpr double kLeast = 1e-12;  // of the square
  const auto inverse = static_cast<float>(1 / std::sqrt(std::max(dot(z, z, size), kLeast)));
  for (size_t c = 0; c < size; ++c) out[c] = z[c] * inverse;
  return inverse;
}

}  // namespace

void Head::add_parameters(const Layer& last, const ModelShape& shape, Parameters& parameters) {
  weight_index_ = parameters.add("head.weight", static_cast<uint32_t>(last.out), shape.num_classes);
  bias_index_ = parameters.add("head.bias", 1, shape.num_classes);
}

void Head::initialise(Parameters& parameters, uint64_t seed) {
  weight_ = parameters.value(weight_index_);
  weight_gradient_ = parameters.gradient(weight_index_);
  bias_ = parameters.value(bias_index_).data;
  bias_gradient_ = parameters.gradient(bias_index_).data;
  parameters.initialise_glorot(weight_index_, seed);
}

void Head::place(Workspace& workspace, size_t rows) {
  unit_ = workspace.take_matrix(rows, weight_.rows);
  inverse_length_ = workspace.take<float>(rows);
  logits_ = workspace.take_matrix(rows, weight_.columns);
}

void Head::multiply_rows(ConstMatrix y, Matrix logits, RowRange rows) const {
  for (size_t r = rows.begin; r < rows.end; ++r) std::copy_n(bias_, logits.columns, logits.row(r));
  multiply(y.rows_from(rows.begin, rows.end), weight_, logits.rows_from(rows.begin, rows.end), 1);
}

Matrix Head::forward(ConstMatrix z) {
  const Matrix y = padded(unit_, z.rows, z.columns), logits = padded(logits_, z.rows, weight_.columns);
  kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) inverse_length_[r] = normalise_row(z.row(r), z.columns, y.row(r));
    multiply_rows(y, logits, rows);
  });
  return logits;
}

void Head::backward(Matrix z) {
  const ConstMatrix y = padded(unit_, z.rows, z.columns), gradient = padded(logits_, z.rows, weight_.columns);
  std::fill_n(bias_gradient_, weight_.columns, 0.0f);
  kernels::add_column_sums({0, z.rows}, gradient, bias_gradient_);
  multiply_by_transpose_of(y, gradient, weight_gradient_);
  kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
    const Matrix dy = z.rows_from(rows.begin, rows.end);
    multiply_transposed(gradient.rows_from(rows.begin, rows.end), weight_, dy);
    for (size_t r = rows.begin; r < rows.end; ++r) {
      const auto along = static_cast<float>(dot(y.row(r), z.row(r), z.columns));
      for (size_t c = 0; c < z.columns; ++c) z.row(r)[c] = (z.row(r)[c] - along * y.row(r)[c]) * inverse_length_[r];
    }
  });
}

void Head::infer(Matrix z, float* logits) const {
  const Matrix out(logits, z.rows, weight_.columns);
  kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) normalise_row(z.row(r), z.columns, z.row(r));
    multiply_rows(z, out, rows);
  });
}

}  // namespace cgcn
