#include "nn/convolution.h"

#include <algorithm>

#include "common/threads.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::DropoutMask;
using kernels::Matrix;
using kernels::padded;
using kernels::RowRange;
using kernels::Tiles;

DropoutMask Step::mask(uint8_t* bits, size_t columns) const {
  if (dropout == 0) return {};
  return {bits, DropoutMask::bytes_for(columns), kernels::dropout_scale(dropout)};
}

bool projects_first(const Layer& layer, const Step& step) {
  if (step.dropout > 0 || !layer.may_project_first() || step.batch.remainder(layer.number) != nullptr) return false;
  // An entry of A moves a row of H or of P; a source that is no target costs a product of its own. Aggregation runs at
  // memory speed: about a sixteenth of the product's operations a second.
  constexpr double kAggregationCost = 16;
  const SparseView& a = step.batch.block(layer.number).forward;
  const double saved =
      kAggregationCost * static_cast<double>(a.num_entries()) * static_cast<double>(layer.in - layer.out);
  const double added = static_cast<double>(a.columns - a.rows) * static_cast<double>(layer.in * layer.out);
  return saved > added;
}

namespace {

// Calls work(rows, columns) for pieces of a matrix, strip of columns by strip, so that what all threads gather from at
// a time is a strip of the source, which stays in the caches. Strips begin at multiples of 64, as masks want it; rows
// are cut as the products cut them.
template <class Work>
void for_strips(size_t rows, size_t columns, Work&& work) {
  constexpr size_t kStrip = 128;
  const Tiles tiles = Tiles::of_rows(rows, 1);
  const size_t strips = (columns + kStrip - 1) / kStrip;
  kernels::parallel_parts(tiles.count() * strips, [&](size_t i) {
    const size_t column = i / tiles.count() * kStrip;
    work(tiles.rows(i % tiles.count()), RowRange{column, std::min(columns, column + kStrip)});
  });
}

ConstMatrix columns_of(ConstMatrix m, RowRange columns) {
  return m.rows > 0 ? m.columns_from(columns.begin, columns.end) : m;
}
Matrix columns_of(Matrix m, RowRange columns) { return m.columns_from(columns.begin, columns.end); }

}  // namespace

void aggregate_all(const SparseView& a, ConstMatrix source, ConstMatrix initial, Matrix out) {
  for_strips(out.rows, out.columns, [&](RowRange rows, RowRange columns) {
    aggregate(a, columns_of(source, columns), rows, columns_of(initial, columns), {}, columns_of(out, columns));
  });
}

namespace {

// C = D([A·H + term, H]).
void gather_input(const Layer& layer, const Step& step, LayerMemory& memory, ConstMatrix previous, ConstMatrix term,
                  Matrix input) {
  const SparseView& a = step.batch.block(layer.number).forward;
  const DropoutMask aggregated_mask = step.mask(memory.aggregated_bits, layer.in);
  const DropoutMask own_mask = step.mask(memory.own_bits, layer.in);
  for_strips(input.rows, layer.in, [&](RowRange rows, RowRange columns) {
    if (step.dropout > 0) {
      draw_dropout(step.dropout_key(aggregated_stream(layer)), step.dropout, rows, columns, aggregated_mask);
      if (layer.concat) draw_dropout(step.dropout_key(own_stream(layer)), step.dropout, rows, columns, own_mask);
    }
    const ConstMatrix source = columns_of(previous, columns);
    aggregate(a, source, rows, columns_of(term, columns), aggregated_mask.columns_from(columns.begin),
              columns_of(input, columns));
    if (layer.concat)
      apply_dropout(own_mask.columns_from(columns.begin), rows, source,
                    input.columns_from(layer.in + columns.begin, layer.in + columns.end));
  });
}

// z = A·(H·W_left) + H·W_right + b.
void project_and_aggregate(const Layer& layer, const Step& step, StepMemory& shared, ConstMatrix previous, Matrix z) {
  const SparseView& a = step.batch.block(layer.number).forward;
  const Matrix projection = padded(shared.projection, a.columns, layer.out);
  const Tiles projected = Tiles::of_rows(a.columns, layer.out), own = Tiles::of_rows(a.rows, layer.out);
  kernels::parallel_parts(projected.count() + own.count(), [&](size_t i) {
    const bool is_own = i >= projected.count();
    const size_t tile = is_own ? i - projected.count() : i;
    const auto [row, row_end] = is_own ? own.rows(tile) : projected.rows(tile);
    const auto [column, column_end] = is_own ? own.columns(tile) : projected.columns(tile);
    const Matrix to = (is_own ? z : projection).tile(row, row_end, column, column_end);
    const ConstMatrix weight = is_own ? layer.own_weight() : layer.aggregated_weight();
    const float keep = is_own ? layer.begin_tile(to, column) : 0;
    if (!is_own || layer.concat)
      multiply(previous.rows_from(row, row_end), weight.columns_from(column, column_end), to, keep);
  });
  const bool begun = layer.concat || layer.values.bias != nullptr;
  aggregate_all(a, projection, begun ? ConstMatrix(z) : ConstMatrix(), z);
}

}  // namespace

void forward_convolution(const Layer& layer, const Step& step, LayerMemory& memory, StepMemory& shared,
                         ConstMatrix previous, ConstMatrix term, Matrix next) {
  memory.projected_first = projects_first(layer, step);
  const size_t n = step.batch.rows_of_layer(layer.number);
  const Matrix z = padded(memory.output, n, layer.out);
  if (memory.projected_first) {
    project_and_aggregate(layer, step, shared, previous, z);
  } else {
    const Matrix input = padded(memory.input, n, layer.fan_in());
    gather_input(layer, step, memory, previous, term, input);
    memory.widen_weight(layer);
    layer.multiply_all(input, memory.weight(layer), padded(memory.output, n, layer.wide_out()));
  }
  layer.activate_all(z, previous, layer.norm(memory.mean, memory.inverse_deviation), next);
}

namespace {

// dz of the layer below from dH, through its activation. Every block of rows has its own column sums, which are added
// in the order of the blocks.
void backward_activation(const Layer& below, LayerMemory& memory, StepMemory& shared, ConstMatrix embedding_gradient) {
  const kernels::LayerNorm norm = below.norm(memory.mean, memory.inverse_deviation);
  const Matrix z = padded(memory.output, embedding_gradient.rows, below.out);
  const size_t blocks = (z.rows + kPassRows - 1) / kPassRows;
  const Matrix sums(shared.column_sums, 2 * blocks, below.out);
  kernels::parallel_rows(z.rows, kPassRows, [&](RowRange rows) {
    const size_t block = rows.begin / kPassRows;
    if (norm.on()) std::fill_n(sums.row(2 * block), 2 * below.out, 0.0f);
    activate_backward(rows, embedding_gradient, norm, z, sums.row(2 * block), sums.row(2 * block + 1));
  });
  if (!norm.on()) return;
  std::fill_n(below.gradients.scale, below.out, 0.0f);
  std::fill_n(below.gradients.offset, below.out, 0.0f);
  for (size_t block = 0; block < blocks; ++block) {
    kernels::add_column_sums({2 * block, 2 * block + 1}, sums, below.gradients.scale);
    kernels::add_column_sums({2 * block + 1, 2 * block + 2}, sums, below.gradients.offset);
  }
}

void add_rows(ConstMatrix from, Matrix to) {
  for (size_t r = 0; r < to.rows; ++r)
    for (size_t c = 0; c < to.columns; ++c) to.row(r)[c] += from.row(r)[c];
}

// dW = Cᵀ·dz and dC = D(dz·Wᵀ) [+ dH' on the own part], tile by tile.
void backward_products(const Layer& layer, const Step& step, LayerMemory& memory, ConstMatrix residual,
                       Matrix input_gradient) {
  const size_t n = input_gradient.rows;
  const ConstMatrix input = padded(memory.input, n, layer.fan_in()), dz = padded(memory.output, n, layer.wide_out());
  const ConstMatrix weight = memory.weight(layer);
  const Matrix weight_gradient = memory.gradient(layer);
  const Tiles weight_tiles = Tiles::of_weights(weight.rows, weight.columns), row_tiles = Tiles::of_rows(n, layer.in);
  const size_t halves = layer.concat ? 2 : 1;
  kernels::parallel_parts(weight_tiles.count() + halves * row_tiles.count(), [&](size_t i) {
    if (i < weight_tiles.count()) {
      const auto [row, row_end] = weight_tiles.rows(i);
      const auto [column, column_end] = weight_tiles.columns(i);
      multiply_by_transpose_of(input.columns_from(row, row_end), dz.columns_from(column, column_end),
                               weight_gradient.tile(row, row_end, column, column_end));
      return;
    }
    const size_t place = i - weight_tiles.count();
    const bool own = place >= row_tiles.count();
    const size_t tile = own ? place - row_tiles.count() : place, first = own ? layer.in : 0;
    const auto [row, row_end] = row_tiles.rows(tile);
    const auto [column, column_end] = row_tiles.columns(tile);
    const Matrix to = input_gradient.columns_from(first + column, first + column_end);
    multiply_transposed(dz.rows_from(row, row_end), weight.rows_from(first + column, first + column_end),
                        to.rows_from(row, row_end));
    if (step.dropout > 0)
      apply_dropout(step.mask(own ? memory.own_bits : memory.aggregated_bits, layer.in).columns_from(column),
                    {row, row_end}, to, to);
    if (own && residual.rows > 0) add_rows(residual.tile(row, row_end, column, column_end), to.rows_from(row, row_end));
  });
  memory.narrow_gradient(layer);
}

void backward_aggregate_first(const Layer& layer, const Step& step, LayerMemory& memory, StepMemory& shared,
                              Matrix dh) {
  const Block& block = step.batch.block(layer.number);
  const size_t targets = block.forward.rows;
  const ConstMatrix residual = layer.residual ? ConstMatrix(dh.rows_from(0, targets)) : ConstMatrix();
  const Matrix input_gradient = padded(shared.input_gradient, targets, layer.fan_in());
  backward_products(layer, step, memory, residual, input_gradient);
  // What a row starts from: the own part, which has the residual's gradient in it; or that alone.
  const ConstMatrix initial =
      layer.concat ? ConstMatrix(input_gradient.columns_from(layer.in, layer.fan_in())) : residual;
  aggregate_all(block.backward, input_gradient.columns_from(0, layer.in), initial, dh);
}

void backward_project_first(const Layer& layer, const Step& step, LayerMemory& memory, StepMemory& shared, Matrix dh) {
  const Block& block = step.batch.block(layer.number);
  const size_t targets = block.forward.rows, sources = block.forward.columns;
  const ConstMatrix input = padded(memory.input, sources, layer.in), dz = padded(memory.output, targets, layer.out);
  const Matrix projection_gradient = padded(shared.projection, sources, layer.out);
  aggregate_all(block.backward, dz, {}, projection_gradient);

  const Tiles row_tiles = Tiles::of_rows(sources, layer.in), weight_tiles = Tiles::of_weights(layer.in, layer.out);
  kernels::parallel_parts(row_tiles.count() + weight_tiles.count(), [&](size_t i) {
    if (i >= row_tiles.count()) {
      const auto [row, row_end] = weight_tiles.rows(i - row_tiles.count());
      const auto [column, column_end] = weight_tiles.columns(i - row_tiles.count());
      const ConstMatrix columns = input.columns_from(row, row_end);
      multiply_by_transpose_of(columns, projection_gradient.columns_from(column, column_end),
                               layer.gradients.weight.tile(row, row_end, column, column_end));
      if (layer.concat)
        multiply_by_transpose_of(columns.rows_from(0, targets), dz.columns_from(column, column_end),
                                 layer.gradients.weight.tile(layer.in + row, layer.in + row_end, column, column_end));
      return;
    }
    const auto [row, row_end] = row_tiles.rows(i);
    const auto [column, column_end] = row_tiles.columns(i);
    const size_t own_end = std::clamp(targets, row, row_end);  // rows of this tile that are targets too
    const Matrix tile = dh.tile(row, row_end, column, column_end);
    float keep = 0;
    if (layer.residual) {  // dh holds the gradient that comes past this layer; beyond the targets there is none
      for (size_t r = own_end - row; r < tile.rows; ++r) std::fill_n(tile.row(r), tile.columns, 0.0f);
      keep = 1;
    }
    multiply_transposed(projection_gradient.rows_from(row, row_end), layer.values.weight.rows_from(column, column_end),
                        tile, keep);
    if (layer.concat)
      multiply_transposed(dz.rows_from(row, own_end),
                          layer.values.weight.rows_from(layer.in + column, layer.in + column_end),
                          tile.rows_from(0, own_end - row), 1);
  });
}

}  // namespace

void backward_convolution(const Layer& layer, const Layer& below, const Step& step, LayerMemory& memory,
                          LayerMemory& below_memory, StepMemory& shared, const DropoutMask& source_mask) {
  const SparseView& a = step.batch.block(layer.number).forward;
  backward_bias(layer, padded(memory.output, a.rows, layer.out));
  const Matrix dh = padded(shared.embedding_gradient, a.columns, layer.in);
  if (memory.projected_first)
    backward_project_first(layer, step, memory, shared, dh);
  else
    backward_aggregate_first(layer, step, memory, shared, dh);
  if (!source_mask.empty())
    kernels::parallel_rows(dh.rows, kPassRows, [&](RowRange rows) { apply_dropout(source_mask, rows, dh, dh); });
  backward_activation(below, below_memory, shared, dh);
}

void backward_bias(const Layer& layer, ConstMatrix z_gradient) {
  if (layer.values.bias == nullptr) return;
  parallel_blocks(layer.out, 64, [&](size_t begin, size_t end) {
    std::fill_n(layer.gradients.bias + begin, end - begin, 0.0f);
    kernels::add_column_sums({0, z_gradient.rows}, z_gradient.columns_from(begin, end), layer.gradients.bias + begin);
  });
}

}  // namespace cgcn
