#include "nn/convolution.h"

#include <algorithm>
#include <cmath>

#include "kernels/dropout.h"
#include "kernels/parallel.h"
#include "nn/aggregate.h"
#include "nn/history.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::Matrix;
using kernels::PackedMatrix;
using kernels::padded;
using kernels::Precision;
using kernels::RowBuffer;
using kernels::RowRange;
using kernels::Rows;
using kernels::Tiles;

namespace {

// Both of one precision.
void add_rows(ConstRows from_rows, Rows to_rows, float factor = 1) {
  const auto add = [&](auto from, auto to) {
    for (size_t r = 0; r < to.rows; ++r)
      for (size_t c = 0; c < to.columns; ++c)
        kernels::store(to_float(to.row(r)[c]) + factor * to_float(from.row(r)[c]), to.row(r)[c]);
  };
  if (to_rows.is_half())
    add(from_rows.halves(), to_rows.halves());
  else
    add(from_rows.floats(), to_rows.floats());
}

void clear_rows(Matrix to) {
  for (size_t r = 0; r < to.rows; ++r) std::fill_n(to.row(r), to.columns, 0.0f);
}

void add_all_rows(ConstRows from, Rows to, float factor = 1) {
  kernels::parallel_rows(to.rows, kPassRows, [&](RowRange rows) {
    add_rows(from.rows_from(rows.begin, rows.end), to.rows_from(rows.begin, rows.end), factor);
  });
}

void scale_rows(float factor, Rows scaled) {
  scaled.visit([&](auto m) {
    kernels::parallel_rows(m.rows, kPassRows, [&](RowRange rows) {
      for (size_t r = rows.begin; r < rows.end; ++r)
        for (size_t c = 0; c < m.columns; ++c) kernels::store(to_float(m.row(r)[c]) * factor, m.row(r)[c]);
    });
  });
}

}  // namespace

Convolution::Convolution(const LayerShape& shape, const ModelOptions& options, InitialRows* initial,
                         Parameters& parameters)
    : Layer(shape),
      last_(shape.last),
      norm_before_(options.norm_place == NormPlace::kBefore),
      residual_(options.residual && !shape.last),
      input_(shape.number, shape.in, options),
      linear_(shape.name(), input_.columns(), shape.out, options.bias, parameters) {
  if (norm_before_ || !last_)
    activation_ = Activation(shape.name(), norm_before_ ? in() : out(), options.norm(), parameters);
  if (last_) return;
  initial_ = initial;
  if (options.identity_mapping > 0)
    identity_ = std::min(1.0f, std::log(options.identity_mapping / static_cast<float>(shape.number) + 1));
}

void Convolution::plan(Workspace& workspace, std::span<const size_t> rows) {
  const size_t targets = rows[number()], sources = rows[number() - 1];
  const bool projects = may_project_first() && workspace.precision() == Precision::kFloat32;
  workspace_ = &workspace;
  input_.plan(workspace, targets, sources);
  const size_t h_bytes = projects ? workspace.row_bytes(sources, in()) : 0;  // it may lie there
  linear_.plan(workspace, targets, h_bytes, input_.concat() ? 2 : 1);
  activation_.plan(workspace, norm_before_ ? sources : targets);
  workspace.share_rows(number() - 1, sources, in());
  workspace.share_scratch(workspace.row_bytes(targets, linear_.in()));
  if (projects) workspace.share_scratch(workspace.row_bytes(sources, out()));
}

Rows Convolution::place_input(const Step& step) const {
  if (norm_before_) return activation_.input(step.batch.rows_of_layer(number() - 1));
  return place_sources(step);
}

Rows Convolution::place_sources(const Step& step) const {
  const size_t sources = step.batch.rows_of_layer(number() - 1);
  if (projects_first(step)) return padded(linear_.input_memory(), sources, in(), Precision::kFloat32);
  return workspace_->rows(number() - 1, sources, in());
}

bool Convolution::projects_first(const Step& step) const {
  if (!may_project_first() || workspace_->precision() != Precision::kFloat32) return false;
  if (input_.drops_after(step) || step.batch.remainder(number()) != nullptr) return false;
  // An entry of A moves a row of h or of P; a source that is no target costs a product of its own. Aggregation runs at
  // memory speed: about a sixteenth of the product's operations per second.
  constexpr double kAggregationCost = 16;
  const SparseView& a = step.batch.adjacency(number()).forward;
  const double saved = kAggregationCost * static_cast<double>(a.num_entries()) * static_cast<double>(in() - out());
  const double added = static_cast<double>(a.columns - a.rows) * static_cast<double>(in() * out());
  return saved > added;
}

void Convolution::forward(const Step& step, Rows below, Rows out) {
  Rows h = below;
  if (norm_before_) {
    h = place_sources(step);
    activation_.apply(&step, below.floats(), {}, h);
  }
  input_.drop_sources(step, h);
  const ConstMatrix term = constant_term(step, h);
  if (step.terms == Terms::kOnly && last_) return;

  projected_first_ = projects_first(step);
  const SparseView& a = step.batch.adjacency(number()).forward;
  const Matrix z = norm_after() ? activation_.input(out.rows) : out.floats();
  if (projected_first_) {
    project_and_aggregate(a, h.floats(), z);
  } else {
    const Rows c = linear_.input(z.rows);
    input_.aggregate(step, a, h, initial_ != nullptr ? initial_->scaled(z.rows) : term, c);
    if (initial_ != nullptr) scale_rows(1 - initial_->share(), c.columns_from(0, in()));
    linear_.forward(z);
  }
  finish(&step, linear_.input(z.rows).columns_from(0, in()), below, z, out);
}

void Convolution::finish(const Step* step, ConstRows left, ConstRows below, Matrix z, Rows out) const {
  if (maps_identity()) add_identity(left, z);
  if (norm_after()) return activation_.apply(step, z, residual_ ? below : ConstRows(), out);
  if (residual_) add_all_rows(below, z);
  if (out.data != z.data) copy_rows(z, out);
}

void Convolution::add_identity(ConstRows left_rows, Matrix z) const {
  left_rows.visit([&](auto left) {
    kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
      for (size_t r = rows.begin; r < rows.end; ++r)
        for (size_t c = 0; c < out(); ++c)
          z.row(r)[c] = identity_ * z.row(r)[c] + (1 - identity_) * to_float(left.row(r)[c]);
    });
  });
}

// What stands in for the edges that a batch of samples leaves out.
ConstMatrix Convolution::constant_term(const Step& step, ConstRows h) const {
  if (step.batch.remainder(number()) == nullptr) return {};
  if (step.terms != Terms::kKept) step.input.history->advance(step.batch, number(), h.floats());
  return step.input.history->term(step.batch, number());
}

void Convolution::project_and_aggregate(const SparseView& a, ConstMatrix h, Matrix z) const {
  const Matrix projection = padded(static_cast<float*>(workspace_->scratch()), a.columns, out());
  const Tiles projected = Tiles::of_rows(a.columns, out()), own = Tiles::of_rows(a.rows, out());
  kernels::parallel_tiles(projected.count() + own.count(), [&](size_t i) {
    const bool is_own = i >= projected.count();
    const size_t tile = is_own ? i - projected.count() : i;
    const auto [row, row_end] = is_own ? own.rows(tile) : projected.rows(tile);
    const auto [column, column_end] = is_own ? own.columns(tile) : projected.columns(tile);
    const Matrix to = (is_own ? z : projection).tile(row, row_end, column, column_end);
    const ConstMatrix from = h.rows_from(row, row_end);
    if (!is_own)
      multiply(from, left_weight().columns_from(column, column_end), to);
    else if (input_.concat())
      linear_.multiply_first(from, right_weight().columns_from(column, column_end), column, to);
    else
      linear_.begin_tile(to, column);
  });
  const bool begun = input_.concat() || linear_.bias() != nullptr;
  aggregate_all(a, projection, begun ? ConstMatrix(z) : ConstMatrix(), z);
}

Rows Convolution::backward(const Step& step, Rows gradient) {
  const Rows dz = norm_after() ? activation_.backward(gradient) : linear_.ready(gradient);
  if (maps_identity()) scale_rows(identity_, dz);
  linear_.backward_bias(dz);
  const Rows dh = workspace_->rows(number() - 1, step.batch.rows_of_layer(number() - 1), in());
  const ConstRows past = residual_ && norm_after() ? ConstRows(gradient) : ConstRows();  // goes past the layer
  if (projected_first_)
    backward_project_first(step, dz.floats(), dh.floats());  // the last layer, which nothing goes past
  else
    backward_aggregate_first(step, dz, past, dh);
  input_.drop_sources_backward(step, dh);
  if (!norm_before_) return dh;
  const Rows below = activation_.backward(dh);
  if (residual_) add_all_rows(dz, below.rows_from(0, dz.rows), 1 / identity_);
  return below;
}

void Convolution::backward_aggregate_first(const Step& step, ConstRows dz, ConstRows past, Rows dh) const {
  const Rows input_gradient = padded(workspace_->scratch(), dz.rows, linear_.in(), workspace_->precision());
  backward_products(step, dz, past, input_gradient);
  if (initial_ != nullptr) initial_->take_gradient(input_gradient.columns_from(0, in()));
  // What a row starts from: the own columns, which have the residual's gradient in it; or that alone.
  const ConstRows initial = input_.concat() ? ConstRows(input_gradient.columns_from(in(), linear_.in())) : past;
  aggregate_all(step.batch.adjacency(number()).backward, input_gradient.columns_from(0, in()), initial, dh);
}

// dW = Cᵀ·dz and dC = D(dz·Wᵀ) [+ dH_l on the own columns], tile by tile.
void Convolution::backward_products(const Step& step, ConstRows dz, ConstRows past, Rows input_gradient) const {
  const size_t weight_tiles = linear_.weight_tiles().count(), halves = input_.concat() ? 2 : 1;
  const Tiles row_tiles = Tiles::of_rows(dz.rows, in(), linear_.column_unit());
  linear_.begin_backward(dz);
  kernels::parallel_tiles(weight_tiles + halves * row_tiles.count(), [&](size_t i) {
    if (i < weight_tiles) return linear_.backward_tile(i, dz);
    const size_t place = i - weight_tiles;
    const bool own = place >= row_tiles.count();
    const size_t tile = own ? place - row_tiles.count() : place, first = own ? in() : 0;
    const auto [row, row_end] = row_tiles.rows(tile);
    const auto [column, column_end] = row_tiles.columns(tile);
    const Rows to = input_gradient.columns_from(first + column, first + column_end);
    linear_.backward_input(dz.rows_from(row, row_end), own ? 1 : 0, {column, column_end}, to.rows_from(row, row_end));
    if (!own && maps_identity())
      add_rows(dz.tile(row, row_end, column, column_end), to.rows_from(row, row_end), (1 - identity_) / identity_);
    if (input_.drops_after(step))
      apply_dropout(input_.mask_after(step, own).columns_from(column), {row, row_end}, to, to);
    if (own && past.rows > 0) add_rows(past.tile(row, row_end, column, column_end), to.rows_from(row, row_end));
  });
}

void Convolution::backward_project_first(const Step& step, ConstMatrix dz, Matrix dh) const {
  const size_t targets = dz.rows, sources = dh.rows;
  const ConstMatrix h = padded(linear_.input_memory(), sources, in(), Precision::kFloat32).floats();
  const Matrix dp = padded(static_cast<float*>(workspace_->scratch()), sources, out()), dw = linear_.weight_gradient();
  aggregate_all(step.batch.adjacency(number()).backward, dz, {}, dp);

  const Tiles row_tiles = Tiles::of_rows(sources, in()), weight_tiles = Tiles::of_weights(in(), out());
  kernels::parallel_tiles(row_tiles.count() + weight_tiles.count(), [&](size_t i) {
    if (i >= row_tiles.count()) {
      const auto [row, row_end] = weight_tiles.rows(i - row_tiles.count());
      const auto [column, column_end] = weight_tiles.columns(i - row_tiles.count());
      const ConstMatrix columns = h.columns_from(row, row_end);
      multiply_by_transpose_of(columns, dp.columns_from(column, column_end), dw.tile(row, row_end, column, column_end));
      if (input_.concat())
        multiply_by_transpose_of(columns.rows_from(0, targets), dz.columns_from(column, column_end),
                                 dw.tile(in() + row, in() + row_end, column, column_end));
      return;
    }
    const auto [row, row_end] = row_tiles.rows(i);
    const auto [column, column_end] = row_tiles.columns(i);
    const size_t own_end = std::clamp(targets, row, row_end);  // rows of this tile that are targets too
    const Matrix tile = dh.tile(row, row_end, column, column_end);
    multiply_transposed(dp.rows_from(row, row_end), left_weight().rows_from(column, column_end), tile);
    if (input_.concat())
      multiply_transposed(dz.rows_from(row, own_end), right_weight().rows_from(column, column_end),
                          tile.rows_from(0, own_end - row), 1);
  });
}

Messages Convolution::messages() const {
  return norm_before_ || may_project_first() ? Messages::kOwn : Messages::kInput;
}

// act(H), or P and what P's sum is added to.
void Convolution::message(ConstRows own, const BFloat16* packed, Rows messages, Rows kept) const {
  if (!may_project_first()) {
    Buffer<float> wide;
    return activation_.apply(nullptr, widened(own, wide), {}, messages);
  }
  RowBuffer memory;
  project(activate_own(own, memory), packed, messages.floats(), kept.floats());
}

void Convolution::project(ConstRows h, const BFloat16* packed, Matrix messages, Matrix kept) const {
  if (packed != nullptr) {
    kernels::multiply(h.halves(), PackedMatrix{packed, in(), out()}, messages);
    if (input_.concat())
      return kernels::multiply(h.halves(), PackedMatrix{packed + packed_part(), in(), out()}, kept, linear_.bias());
    if (linear_.begin_tile(kept, 0) == 0) clear_rows(kept);
    return;
  }
  multiply(h.floats(), left_weight(), messages);
  if (input_.concat())
    linear_.multiply_first(h.floats(), right_weight(), 0, kept);
  else if (linear_.begin_tile(kept, 0) == 0)
    clear_rows(kept);
}

size_t Convolution::packed_elements() const {
  return may_project_first() ? (input_.concat() ? 2 : 1) * packed_part() : linear_.packed_elements();
}

void Convolution::pack_weights(BFloat16* packed) const {
  if (!may_project_first()) return linear_.pack(packed);
  Linear::pack_weight(left_weight(), packed);
  if (input_.concat()) Linear::pack_weight(right_weight(), packed + packed_part());
}

void Convolution::infer(const InferenceRows& rows, Rows out) const {
  const ProductRows product(out);
  const Matrix z = product.z();
  if (may_project_first()) {
    const ConstMatrix kept = rows.own.floats(), sums = rows.aggregated.floats();
    for (size_t r = 0; r < z.rows; ++r)
      for (size_t c = 0; c < z.columns; ++c) z.row(r)[c] = kept.row(r)[c] + sums.row(r)[c];
    if (out.data != z.data) copy_rows(z, out);
    return;
  }
  RowBuffer mixed, activated;
  Buffer<float> wide;
  const ConstRows left = initial_ != nullptr ? initial_->mix(rows.aggregated, rows.initial, mixed) : rows.aggregated;
  infer_product(left, input_.concat() ? activate_own(rows.own, activated) : rows.own, rows.packed, z);
  const bool widens = residual_ && !(norm_after() && out.is_half());  // the residual joins float32 rows
  finish(nullptr, left, widens ? ConstRows(widened(rows.own, wide)) : rows.own, z, out);
}

void Convolution::infer_product(ConstRows left, ConstRows own, const BFloat16* packed, Matrix z) const {
  if (packed != nullptr) {
    if (!input_.concat()) return linear_.infer(left.halves(), packed, z);
    RowBuffer c(z.rows, linear_.in(), Precision::kBFloat16);
    copy_rows(left, c.rows().columns_from(0, in()));
    copy_rows(own, c.rows().columns_from(in(), linear_.in()));
    return linear_.infer(c.rows().halves(), packed, z);
  }
  linear_.multiply_first(left.floats(), left_weight(), 0, z);
  if (input_.concat()) multiply(own.floats(), right_weight(), z, 1);
}

ConstRows Convolution::activate_own(ConstRows below, RowBuffer& memory) const {
  if (!norm_before_) return below;
  Buffer<float> wide;
  memory = RowBuffer(below.rows, in(), below.precision);
  activation_.apply(nullptr, widened(below, wide), {}, memory.rows());
  return memory.rows();
}

}  // namespace cgcn
