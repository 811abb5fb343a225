#include "nn/convolution_input.h"

#include "kernels/parallel.h"
#include "kernels/spmm.h"
#include "nn/aggregate.h"
#include "nn/layer.h"

namespace cgcn {

using kernels::ConstRows;
using kernels::DropoutMask;
using kernels::RowRange;
using kernels::Rows;

ConvolutionInput::ConvolutionInput(uint32_t number, size_t in, const ModelOptions& options)
    : number_(number),
      in_(in),
      concat_(options.convolution == ConvolutionForm::kConcat),
      drops_(options.dropout > 0),
      place_(options.dropout_place) {}

void ConvolutionInput::plan(Workspace& workspace, size_t rows, size_t sources) {
  if (!drops_) return;
  if (place_ == DropoutPlace::kBefore) source_bits_ = workspace.take<uint8_t>(DropoutMask::buffer_bytes(sources, in_));
  left_bits_ = workspace.take<uint8_t>(DropoutMask::buffer_bytes(rows, in_));
  if (concat_) right_bits_ = workspace.take<uint8_t>(DropoutMask::buffer_bytes(rows, in_));
}

uint32_t ConvolutionInput::stream(bool right) const {
  constexpr uint32_t kProjection = 254;  // above those of 64 layers
  return (number_ > 0 ? 2 * (number_ - 1) : kProjection) + (right ? 1 : 0);
}

DropoutMask ConvolutionInput::mask(const Step& step, uint8_t* bits) const {
  if (step.dropout == 0) return {};
  return {bits, DropoutMask::bytes_for(in_), kernels::dropout_scale(step.dropout)};
}

DropoutMask ConvolutionInput::mask_after(const Step& step, bool right) const {
  return drops_after(step) ? mask(step, right ? right_bits_ : left_bits_) : DropoutMask();
}

void ConvolutionInput::drop_sources(const Step& step, Rows h) const {
  if (step.dropout == 0 || place_ == DropoutPlace::kAfter) return;
  const DropoutMask drawn = mask(step, source_bits_);
  kernels::parallel_rows(h.rows, kPassRows, [&](RowRange rows) {
    draw_dropout(step.dropout_key(stream()), step.dropout, rows, {0, h.columns}, drawn);
    apply_dropout(drawn, rows, h, h);
  });
}

void ConvolutionInput::drop_sources_backward(const Step& step, Rows gradient) const {
  if (step.dropout == 0 || place_ == DropoutPlace::kAfter) return;
  const DropoutMask drawn = mask(step, source_bits_);
  kernels::parallel_rows(gradient.rows, kPassRows,
                         [&](RowRange rows) { apply_dropout(drawn, rows, gradient, gradient); });
}

void ConvolutionInput::aggregate(const Step& step, const SparseView& a, ConstRows h, ConstRows term, Rows c) const {
  const DropoutMask left = mask_after(step, false), right = mask_after(step, true);
  for_strips(c.columns_from(0, in_), [&](RowRange rows, RowRange columns) {
    if (drops_after(step)) {
      draw_dropout(step.dropout_key(stream(false)), step.dropout, rows, columns, left);
      if (concat_) draw_dropout(step.dropout_key(stream(true)), step.dropout, rows, columns, right);
    }
    const ConstRows source = columns_of(h, columns);
    kernels::aggregate(a, source, rows, c.columns_from(columns.begin, columns.end), columns_of(term, columns),
                       left.columns_from(columns.begin));
    if (concat_)
      apply_dropout(right.columns_from(columns.begin), rows, source,
                    c.columns_from(in_ + columns.begin, in_ + columns.end));
  });
}

namespace {

void gather_block(const FeatureMatrix& features, const Batch& batch, RowRange rows, const DropoutMask& mask, Rows out) {
  const NodeId* ids = batch.inputs.data();
  if (features.kind() == FeatureMatrix::Kind::kDense32)
    gather_rows(features.dense32().data(), ids, rows, mask, out);
  else if (features.kind() == FeatureMatrix::Kind::kDenseBFloat16)
    gather_rows(features.dense_bfloat16().data(), ids, rows, mask, out);
  else
    gather_rows(features.dense16().data(), ids, rows, mask, out);
}

}  // namespace

void ConvolutionInput::gather(const Step& step, const FeatureMatrix& left, const FeatureMatrix& right, Rows c) const {
  const auto gather_half = [&](const FeatureMatrix& features, bool is_right, RowRange rows) {
    const DropoutMask drawn = mask(step, is_right ? right_bits_ : left_bits_);
    if (!drawn.empty()) draw_dropout(step.dropout_key(stream(is_right)), step.dropout, rows, {0, in_}, drawn);
    const size_t first = is_right ? in_ : 0;
    gather_block(features, step.batch, rows, drawn, c.columns_from(first, first + in_));
  };
  kernels::parallel_rows(c.rows, kPassRows, [&](RowRange rows) {
    gather_half(left, false, rows);
    if (concat_) gather_half(right, true, rows);
  });
}

ModelOptions with_input_dropout(ModelOptions options) {
  options.dropout = options.first_dropout();
  return options;
}

void gather_features(const FeatureMatrix& features, const Batch& batch, Rows out) {
  kernels::parallel_rows(out.rows, kPassRows, [&](RowRange rows) { gather_block(features, batch, rows, {}, out); });
}

}  // namespace cgcn
