#include "nn/input_layer.h"

#include <algorithm>

#include "nn/aggregate.h"
#include "nn/feature_product.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::padded;

InputLayer::InputLayer(const LayerShape& shape, const ModelOptions& options, bool sparse, Parameters& parameters)
    : Layer(shape),
      sparse_(sparse),
      input_(shape.number, shape.in, with_input_dropout(options)),
      linear_(shape.name(), input_.columns(), shape.out, options.bias, parameters) {
  if (!shape.last && options.norm_place == NormPlace::kAfter)
    activation_ = Activation(shape.name(), out(), options.norm(), parameters);
}

void InputLayer::plan(Workspace& workspace, std::span<const size_t> rows) {
  activation_.plan(workspace, rows[number()]);
  if (sparse_) return;
  input_.plan(workspace, rows[number()], rows[number() - 1]);
  linear_.plan(workspace, rows[number()]);
}

void InputLayer::forward(const Step& step, Matrix, Matrix out) {
  const Matrix z = activation_.input_of(out);
  if (sparse_)
    forward_sparse(step.of_input(), z);
  else
    forward_dense(step.of_input(), z);
  activation_.apply(&step, z, {}, out);
}

void InputLayer::forward_dense(const Step& step, Matrix z) {
  const Batch& batch = step.batch;
  if (batch.input_adjacency == nullptr) {
    input_.gather(step, step.input.aggregated, step.input.x, linear_.input(z.rows));
  } else {
    const size_t size = batch.inputs.size() * kernels::padded_stride(in());
    if (size > sources_.size()) sources_ = Buffer<float>(size + size / 8);
    const Matrix x = padded(sources_.data(), batch.inputs.size(), in());
    gather_features(step.input.x, batch, x);
    input_.drop_sources(step, x);
    input_.aggregate(step, batch.input_adjacency->forward, x, {}, linear_.input(z.rows));
  }
  linear_.forward(z);
}

void InputLayer::forward_sparse(const Step& step, Matrix z) {
  const FeatureMatrix& x = step.input.x;
  const FeatureMatrix* right = input_.concat() ? &x : nullptr;
  if (step.batch.input_adjacency == nullptr) {
    sparse_rows_.gather(step, input_.stream(), {.left = step.input.aggregated, .right = right});
    return sparse_rows_.multiply(linear_, true, z);
  }
  sparse_rows_.gather(step, input_.stream(), {.left = x, .right = right, .stacked = true, .targets = z.rows});
  sources_.reserve_discarding(sparse_rows_.rows() * kernels::padded_stride(out()));
  const Matrix product = padded(sources_.data(), sparse_rows_.rows(), out());
  sparse_rows_.multiply(linear_, false, product);
  const SparseView& a = step.batch.input_adjacency->forward;
  const ConstMatrix own = product.rows_from(product.rows - (input_.concat() ? z.rows : 0), product.rows);
  aggregate_all(a, product.rows_from(0, a.columns), own, z);
  if (const float* bias = linear_.bias())
    for (size_t r = 0; r < z.rows; ++r)
      for (size_t c = 0; c < out(); ++c) z.row(r)[c] += bias[c];
}

Matrix InputLayer::backward(const Step& step, Matrix gradient) {
  const Matrix dz = activation_.on() ? activation_.backward(gradient) : gradient;
  if (sparse_) {
    backward_sparse(step, dz);
  } else {
    if (!activation_.on()) linear_.clear_padding(dz);
    linear_.backward(dz);
  }
  return {};
}

void InputLayer::backward_sparse(const Step& step, ConstMatrix dz) {
  linear_.backward_bias(dz);
  if (step.batch.input_adjacency == nullptr) return sparse_rows_.backward(linear_, dz);
  const SparseView& back = step.batch.input_adjacency->backward;
  const Matrix gradient = padded(sources_.data(), sparse_rows_.rows(), out());
  aggregate_all(back, dz, {}, gradient.rows_from(0, back.rows));
  if (input_.concat())
    for (size_t r = 0; r < dz.rows; ++r) std::copy_n(dz.row(r), out(), gradient.row(back.rows + r));
  sparse_rows_.backward(linear_, gradient);
}

void InputLayer::infer(const InferenceRows& rows, Matrix out) const {
  multiply_features(linear_, rows.aggregated_x, input_.concat() ? &rows.x : nullptr, rows.begin, out);
  activation_.apply(nullptr, out, {}, out);
}

TouchedRows InputLayer::touched_rows() const {
  return sparse_ ? TouchedRows{false, sparse_rows_.touched()} : TouchedRows();
}

uint64_t InputLayer::bytes() const { return sparse_rows_.bytes() + sources_.size() * sizeof(float); }

}  // namespace cgcn
