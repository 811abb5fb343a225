#include "nn/input_layer.h"

#include <algorithm>

#include "nn/aggregate.h"
#include "nn/feature_product.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::Matrix;
using kernels::padded;
using kernels::Precision;
using kernels::Rows;

InputLayer::InputLayer(const LayerShape& shape, const ModelOptions& options, bool sparse, Parameters& parameters)
    : Layer(shape),
      sparse_(sparse),
      input_(shape.number, shape.in, with_input_dropout(options)),
      linear_(shape.name(), input_.columns(), shape.out, options.has_bias(), parameters) {
  if (!shape.last && options.norm_place == NormPlace::kAfter)
    activation_ = Activation(shape.name(), out(), options.norm(), parameters);
}

void InputLayer::plan(Workspace& workspace, std::span<const size_t> rows) {
  workspace_ = &workspace;
  activation_.plan(workspace, rows[number()]);
  if (sparse_) return;
  input_.plan(workspace, rows[number()], rows[number() - 1]);
  linear_.plan(workspace, rows[number()], 0, /*parts=*/0);
}

void InputLayer::forward(const Step& step, Rows, Rows out) {
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
    const size_t size = workspace_->row_bytes(batch.inputs.size(), in());
    if (size > sources_.size()) sources_ = Buffer<char>(size + size / 8);
    const Rows x = padded(sources_.data(), batch.inputs.size(), in(), workspace_->precision());
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
  sources_.reserve_discarding(Workspace::row_bytes(sparse_rows_.rows(), out(), Precision::kFloat32));
  const Matrix product = sparse_product();
  sparse_rows_.multiply(linear_, false, product);
  const SparseView& a = step.batch.input_adjacency->forward;
  const ConstMatrix own = product.rows_from(product.rows - (input_.concat() ? z.rows : 0), product.rows);
  aggregate_all(a, product.rows_from(0, a.columns), own, z);
  if (const float* bias = linear_.bias())
    for (size_t r = 0; r < z.rows; ++r)
      for (size_t c = 0; c < out(); ++c) z.row(r)[c] += bias[c];
}

Rows InputLayer::backward(const Step& step, Rows gradient) {
  const Rows dz = activation_.on() ? activation_.backward(gradient) : gradient;
  if (sparse_)
    backward_sparse(step, dz);
  else
    linear_.backward(activation_.on() ? dz : linear_.ready(dz));
  return {};
}

Matrix InputLayer::sparse_product() {
  return padded(sources_.data(), sparse_rows_.rows(), out(), Precision::kFloat32).floats();
}

void InputLayer::backward_sparse(const Step& step, ConstRows dz) {
  linear_.backward_bias(dz);
  if (step.batch.input_adjacency == nullptr) return sparse_rows_.backward(linear_, dz);
  const SparseView& back = step.batch.input_adjacency->backward;
  const Matrix gradient = sparse_product();
  aggregate_all(back, dz, {}, gradient.rows_from(0, back.rows));
  if (input_.concat())
    dz.visit([&](auto rows) {
      for (size_t r = 0; r < rows.rows; ++r)
        for (size_t c = 0; c < out(); ++c) gradient.row(back.rows + r)[c] = to_float(rows.row(r)[c]);
    });
  sparse_rows_.backward(linear_, gradient);
}

void InputLayer::infer(const InferenceRows& rows, Rows out) const {
  const ProductRows product(out);
  multiply_features(linear_, {rows.aggregated_x, input_.concat() ? &rows.x : nullptr, rows.begin}, rows.packed,
                    product.z());
  activation_.apply(nullptr, product.z(), {}, out);
}

TouchedRows InputLayer::touched_rows() const {
  return sparse_ ? TouchedRows{false, sparse_rows_.touched()} : TouchedRows();
}

uint64_t InputLayer::bytes() const { return sparse_rows_.bytes() + sources_.size(); }

}  // namespace cgcn
