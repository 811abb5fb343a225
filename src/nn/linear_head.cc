#include "nn/linear_head.h"

#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::DropoutMask;
using kernels::Matrix;
using kernels::MatrixView;
using kernels::RowRange;
using kernels::Rows;

namespace {

size_t columns_of_all(const LayerShape& shape, Jumping jumping) {
  return jumping == Jumping::kConcat ? shape.number * shape.in : shape.in;
}

}  // namespace

LinearHead::LinearHead(const LayerShape& shape, const ModelOptions& options, Parameters& parameters)
    : Layer(shape),
      jumping_(options.jumping),
      drops_(options.dropout > 0),
      linear_("head", columns_of_all(shape, options.jumping), shape.out, /*bias=*/true, parameters) {}

void LinearHead::plan(Workspace& workspace, std::span<const size_t> rows) {
  const size_t outputs = rows[number()];
  workspace_ = &workspace;
  linear_.plan(workspace, outputs);
  if (drops_) bits_ = workspace.take<uint8_t>(DropoutMask::buffer_bytes(outputs, linear_.in()));
  if (jumping_ == Jumping::kNone) return;
  if (jumping_ == Jumping::kMax) largest_ = workspace.take<uint8_t>(outputs * in());
  workspace.share_rows(number(), outputs, in());
}

Rows LinearHead::place_input(const Step& step) const {
  const size_t outputs = step.batch.rows_of_layer(number());
  return jumping_ == Jumping::kNone ? linear_.input(outputs) : workspace_->rows(number(), outputs, in());
}

void LinearHead::take_rows(const Step& step, uint32_t layer, ConstRows h) {
  if (jumping_ == Jumping::kNone || layer == 0) return;
  outputs_ = step.batch.rows_of_layer(number());
  const Rows c = linear_.input(outputs_);
  if (c.is_half())
    take_rows(layer, h.halves(), c.halves());
  else
    take_rows(layer, h.floats(), c.floats());
}

template <class T>
void LinearHead::take_rows(uint32_t layer, MatrixView<const T> h, MatrixView<T> c) const {
  kernels::parallel_rows(outputs_, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) {
      const T* from = h.row(r);
      if (jumping_ == Jumping::kConcat || layer == 1) {
        std::copy_n(from, in(), c.row(r) + (jumping_ == Jumping::kConcat ? (layer - 1) * in() : 0));
        if (jumping_ == Jumping::kMax) std::fill_n(largest(r), in(), uint8_t{1});
        continue;
      }
      for (size_t k = 0; k < in(); ++k)
        if (to_float(from[k]) > to_float(c.row(r)[k])) {
          c.row(r)[k] = from[k];
          largest(r)[k] = static_cast<uint8_t>(layer);
        }
    }
  });
}

DropoutMask LinearHead::mask(const Step& step) const {
  return {bits_, DropoutMask::bytes_for(linear_.in()), kernels::dropout_scale(step.dropout)};
}

// In place; the streams of convolution L + 1.
void LinearHead::drop(const Step& step, Rows c, bool draws) const {
  if (step.dropout == 0) return;
  kernels::parallel_rows(c.rows, kPassRows, [&](RowRange rows) {
    if (draws) draw_dropout(step.dropout_key(2 * number()), step.dropout, rows, {0, c.columns}, mask(step));
    apply_dropout(mask(step), rows, c, c);
  });
}

void LinearHead::forward(const Step& step, Rows, Rows out) {
  drop(step, linear_.input(out.rows), /*draws=*/true);
  linear_.forward(out.floats());
}

// dC takes the place of C.
Rows LinearHead::backward(const Step& step, Rows gradient) {
  const Rows dz = linear_.ready(gradient), dc = linear_.input(gradient.rows);
  linear_.backward(dz);
  kernels::parallel_rows(dc.rows, kPassRows, [&](RowRange rows) {
    const Rows from = dz.rows_from(rows.begin, rows.end), to = dc.rows_from(rows.begin, rows.end);
    if (dz.is_half())
      linear_.backward_input(from, 0, {0, dc.columns}, to);
    else
      multiply_transposed(from.floats(), linear_.weight(), to.floats());
  });
  drop(step, dc, /*draws=*/false);
  if (jumping_ == Jumping::kNone) return dc;
  const Rows dh = place_input(step);
  dh.visit([&](auto to) {
    kernels::parallel_rows(to.rows, kPassRows, [&](RowRange rows) {
      for (size_t r = rows.begin; r < rows.end; ++r)
        for (size_t c = 0; c < in(); ++c) to.row(r)[c] = {};
    });
  });
  add_gradient(number(), dh);
  return dh;
}

void LinearHead::add_gradient(uint32_t layer, Rows gradient) const {
  if (jumping_ == Jumping::kNone || layer == 0) return;
  const ConstRows dc = linear_.input(outputs_);
  if (dc.is_half())
    add_gradient(layer, dc.halves(), gradient.halves());
  else
    add_gradient(layer, dc.floats(), gradient.floats());
}

template <class T>
void LinearHead::add_gradient(uint32_t layer, MatrixView<const T> dc, MatrixView<T> gradient) const {
  kernels::parallel_rows(outputs_, kPassRows, [&](RowRange rows) {
    for (size_t r = rows.begin; r < rows.end; ++r) {
      T* to = gradient.row(r);
      const T* from = dc.row(r) + (jumping_ == Jumping::kConcat ? (layer - 1) * in() : 0);
      for (size_t k = 0; k < in(); ++k)
        if (jumping_ == Jumping::kConcat || largest(r)[k] == layer)
          kernels::store(to_float(to[k]) + to_float(from[k]), to[k]);
    }
  });
}

size_t LinearHead::carried_columns() const {
  switch (jumping_) {
    case Jumping::kNone:
      return 0;
    case Jumping::kConcat:
      return out();
    case Jumping::kMax:
      return in();
  }
  return 0;
}

void LinearHead::carry(uint32_t layer, ConstRows h, ConstMatrix before, Matrix after) const {
  Buffer<float> wide;
  carry_floats(layer, widened(h, wide), before, after);
}

void LinearHead::carry_floats(uint32_t layer, ConstMatrix h, ConstMatrix before, Matrix after) const {
  if (jumping_ == Jumping::kConcat) return multiply_rows(layer, h, layer > 1 ? before : ConstMatrix(), after);
  for (size_t r = 0; r < after.rows; ++r)
    for (size_t k = 0; k < in(); ++k)
      after.row(r)[k] = layer > 1 ? std::max(before.row(r)[k], h.row(r)[k]) : h.row(r)[k];
}

// out = before (or the bias) + H_l times its rows of W.
void LinearHead::multiply_rows(uint32_t layer, ConstMatrix h, ConstMatrix before, Matrix to) const {
  const size_t first = jumping_ == Jumping::kConcat ? (layer - 1) * in() : 0;
  const ConstMatrix weight = linear_.weight().rows_from(first, first + in());
  if (before.rows == 0) return linear_.multiply_first(h, weight, 0, to);
  copy_rows(before, to);
  multiply(h, weight, to, 1);
}

void LinearHead::infer(const InferenceRows& rows, Rows out) const {
  Buffer<float> wide;
  const ConstMatrix h = widened(rows.own, wide);
  const Matrix to = out.floats();
  if (jumping_ != Jumping::kMax || number() == 1)
    return multiply_rows(number(), h, number() > 1 ? rows.carried : ConstMatrix(), to);
  Buffer<float> largest_values(to.rows * in());
  const Matrix c(largest_values.data(), to.rows, in());
  carry_floats(number(), h, rows.carried, c);
  multiply_rows(number(), c, {}, to);
}

}  // namespace cgcn
