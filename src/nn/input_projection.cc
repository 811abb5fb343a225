#include "nn/input_projection.h"

#include "nn/feature_product.h"

namespace cgcn {

using kernels::Matrix;
using kernels::Rows;

namespace {

constexpr const char* kName = "projection";

// D drops values of X, wherever the convolutions have it.
ModelOptions without_aggregation(ModelOptions options) {
  options = with_input_dropout(options);
  options.convolution = ConvolutionForm::kPlain;
  options.dropout_place = DropoutPlace::kAfter;
  return options;
}

}  // namespace

InputProjection::InputProjection(const LayerShape& shape, const ModelOptions& options, bool sparse,
                                 Parameters& parameters)
    : Layer(shape),
      sparse_(sparse),
      input_(shape.number, shape.in, without_aggregation(options)),
      linear_(kName, shape.in, shape.out, options.bias, parameters),
      initial_(options.initial_residual) {
  if (options.norm_place == NormPlace::kAfter) activation_ = Activation(kName, out(), options.norm(), parameters);
}

void InputProjection::plan(Workspace& workspace, std::span<const size_t> rows) {
  activation_.plan(workspace, rows[number()]);
  initial_.plan(workspace, rows[number()], out());
  if (sparse_) return;
  input_.plan(workspace, rows[number()], 0);
  linear_.plan(workspace, rows[number()], 0, /*parts=*/0);
}

void InputProjection::forward(const Step& step, Rows, Rows out) {
  const Matrix z = activation_.input_of(out);
  const FeatureMatrix& x = step.input.x;
  if (sparse_) {
    sparse_rows_.gather(step.of_input(), input_.stream(), {.left = x});
    sparse_rows_.multiply(linear_, true, z);
  } else {
    input_.gather(step.of_input(), x, x, linear_.input(z.rows));
    linear_.forward(z);
  }
  activation_.apply(&step, z, {}, out);
  initial_.keep(out);
}

Rows InputProjection::backward(const Step&, Rows gradient) {
  initial_.add_gradient_to(gradient);
  const Rows dz = activation_.on() ? activation_.backward(gradient) : gradient;
  if (sparse_) {
    linear_.backward_bias(dz);
    sparse_rows_.backward(linear_, dz);
  } else {
    linear_.backward(activation_.on() ? dz : linear_.ready(dz));
  }
  return {};
}

void InputProjection::infer(const InferenceRows& rows, Rows out) const {
  const ProductRows product(out);
  multiply_features(linear_, {rows.x, nullptr, rows.begin}, rows.packed, product.z());
  activation_.apply(nullptr, product.z(), {}, out);
}

TouchedRows InputProjection::touched_rows() const {
  return sparse_ ? TouchedRows{false, sparse_rows_.touched()} : TouchedRows();
}

}  // namespace cgcn
