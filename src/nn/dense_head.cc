#include "nn/dense_head.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::padded;
using kernels::Precision;
using kernels::RowRange;
using kernels::Rows;

namespace {

double dot(const float* a, const float* b, size_t size) {
  double sum = 0;
  for (size_t c = 0; c < size; ++c) sum += double{a[c]} * b[c];
  return sum;
}

// out = h / ‖h‖; returns 1 / ‖h‖. A row of zeros stays one.
float normalise_row(const float* h, size_t size, float* out) {
  constexpr double kLeast = 1e-12;  // of the square
  const auto inverse = static_cast<float>(1 / std::sqrt(std::max(dot(h, h, size), kLeast)));
  for (size_t c = 0; c < size; ++c) out[c] = h[c] * inverse;
  return inverse;
}

}  // namespace

DenseHead::DenseHead(const LayerShape& shape, Parameters& parameters)
    : Layer(shape),
      weight_(parameters, "head.weight", shape.in, shape.out, Initial::kGlorot),
      bias_(parameters, "head.bias", 1, shape.out, Initial::kZero) {}

void DenseHead::plan(Workspace& workspace, std::span<const size_t> rows) {
  workspace_ = &workspace;
  unit_ = workspace.take_matrix(rows[number()], in());
  inverse_length_ = workspace.take<float>(rows[number()]);
  workspace.share_rows(number(), rows[number()], in(), Precision::kFloat32);
}

Rows DenseHead::place_input(const Step& step) const {
  return workspace_->rows(number(), step.batch.rows_of_layer(number()), in(), Precision::kFloat32);
}

void DenseHead::forward(const Step&, Rows below, Rows out) {
  apply(below.floats(), padded(unit_, below.rows, in()), inverse_length_, out.floats());
}

void DenseHead::apply(ConstMatrix h, Matrix y, float* inverse_length, Matrix logits) const {
  kernels::parallel_rows(h.rows, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) {
      inverse_length[r] = normalise_row(h.row(r), in(), y.row(r));
      std::copy_n(bias_.value().data, out(), logits.row(r));
    }
    multiply(ConstMatrix(y).rows_from(rows.begin, rows.end), weight_.value(), logits.rows_from(rows.begin, rows.end),
             1);
  });
}

Rows DenseHead::backward(const Step& step, Rows logits_gradient) {
  const Matrix gradient = logits_gradient.floats(), dh = place_input(step).floats();
  const ConstMatrix y = padded(unit_, gradient.rows, in());
  std::fill_n(bias_.gradient().data, out(), 0.0f);
  kernels::add_column_sums({0, gradient.rows}, gradient, bias_.gradient().data);
  multiply_by_transpose_of(y, gradient, weight_.gradient());
  kernels::parallel_rows(dh.rows, kPassRows, [&](RowRange rows) {
    multiply_transposed(ConstMatrix(gradient).rows_from(rows.begin, rows.end), weight_.value(),
                        dh.rows_from(rows.begin, rows.end));
    for (size_t r = rows.begin; r < rows.end; ++r) {
      const auto along = static_cast<float>(dot(y.row(r), dh.row(r), in()));
      for (size_t c = 0; c < in(); ++c) dh.row(r)[c] = (dh.row(r)[c] - along * y.row(r)[c]) * inverse_length_[r];
    }
  });
  return dh;
}

void DenseHead::infer(const InferenceRows& rows, Rows out) const {
  Buffer<float> wide, unit(out.rows * in()), inverse_length(out.rows);
  apply(widened(rows.own, wide), Matrix(unit.data(), out.rows, in()), inverse_length.data(), out.floats());
}

}  // namespace cgcn
