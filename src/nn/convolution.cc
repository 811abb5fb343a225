#include "nn/convolution.h"

#include <algorithm>

#include "common/threads.h"
#include "kernels/gemm.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::DropoutMask;
using kernels::Matrix;
using kernels::RowBlocks;
using kernels::RowRange;

DropoutMask Step::mask(Buffer<uint8_t>& bits, size_t columns) const {
  if (dropout == 0) return {};
  return {bits.data(), DropoutMask::bytes_for(columns), kernels::dropout_scale(dropout)};
}

bool projects_first(const Layer& layer, const Step& step) {
  if (step.dropout > 0 || layer.out >= layer.in) return false;
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

void forward_aggregate_first(const Layer& layer, const Step& step, LayerMemory& memory, ConstMatrix previous,
                             Matrix next) {
  const SparseView& a = step.batch.block(layer.number).forward;
  const Matrix input(memory.input.data(), a.rows, layer.fan_in()), z(memory.output.data(), a.rows, layer.out);
  const DropoutMask aggregated_mask = step.mask(memory.aggregated_bits, layer.in);
  const DropoutMask own_mask = step.mask(memory.own_bits, layer.in);
  const RowBlocks blocks(a.rows);
  parallel_blocks(blocks.count(), 1, [&](size_t i, size_t) {
    const RowRange rows = blocks[i];
    if (step.dropout > 0) {
      draw_dropout(step.dropout_key(aggregated_stream(layer)), step.dropout, rows, layer.in, aggregated_mask);
      if (layer.concat) draw_dropout(step.dropout_key(own_stream(layer)), step.dropout, rows, layer.in, own_mask);
    }
    aggregate(a, previous, rows, {}, aggregated_mask, input.columns_from(0, layer.in));
    if (layer.concat) apply_dropout(own_mask, rows, previous, input.columns_from(layer.in, layer.fan_in()));
    const Matrix z_rows = z.rows_from(rows.begin, rows.end);
    multiply(input.rows_from(rows.begin, rows.end), layer.values.weight, z_rows, layer.begin_rows(z_rows));
    layer.finish_rows(rows, z, previous, layer.norm(memory.mean.data(), memory.inverse_deviation.data()), next);
  });
}

void forward_project_first(const Layer& layer, const Step& step, LayerMemory& memory, StepMemory& shared,
                           ConstMatrix previous, Matrix next) {
  const SparseView& a = step.batch.block(layer.number).forward;
  const Matrix projection(shared.projection.data(), a.columns, layer.out), z(memory.output.data(), a.rows, layer.out);
  const RowBlocks sources(a.columns);
  parallel_blocks(sources.count(), 1, [&](size_t i, size_t) {
    const RowRange rows = sources[i];
    multiply(previous.rows_from(rows.begin, rows.end), layer.aggregated_weight(),
             projection.rows_from(rows.begin, rows.end));
  });
  const RowBlocks targets(a.rows);
  parallel_blocks(targets.count(), 1, [&](size_t i, size_t) {
    const RowRange rows = targets[i];
    const Matrix z_rows = z.rows_from(rows.begin, rows.end);
    const float keep = layer.begin_rows(z_rows);
    if (layer.concat) multiply(previous.rows_from(rows.begin, rows.end), layer.own_weight(), z_rows, keep);
    aggregate(a, projection, rows, layer.concat || keep != 0 ? ConstMatrix(z) : ConstMatrix(), {}, z);
    layer.finish_rows(rows, z, previous, layer.norm(memory.mean.data(), memory.inverse_deviation.data()), next);
  });
}

}  // namespace

void forward_convolution(const Layer& layer, const Step& step, LayerMemory& memory, StepMemory& shared,
                         ConstMatrix previous, Matrix next) {
  memory.projected_first = projects_first(layer, step);
  if (memory.projected_first)
    forward_project_first(layer, step, memory, shared, previous, next);
  else
    forward_aggregate_first(layer, step, memory, previous, next);
}

namespace {

// Rows of dH of the layer below, whose activation they are carried through; block i keeps its own column sums.
class ActivationBackward {
 public:
  ActivationBackward(const Layer& below, LayerMemory& memory, StepMemory& shared, size_t rows, size_t blocks)
      : below_(below),
        norm_(below.norm(memory.mean.data(), memory.inverse_deviation.data())),
        z_(memory.output.data(), rows, below.out),
        sums_(shared.column_sums.data(), 2 * blocks, below.out) {
    CGCN_CHECK(2 * blocks * below.out <= shared.column_sums.size());
  }

  void run(size_t block, RowRange rows, ConstMatrix embedding_gradient) {
    float *scale = sums_.row(2 * block), *offset = sums_.row(2 * block + 1);
    if (norm_.on()) std::fill_n(scale, 2 * below_.out, 0.0f);
    activate_backward(rows, embedding_gradient, norm_, z_, scale, offset);
  }

  void finish() {  // sums in the order of the blocks
    if (!norm_.on()) return;
    std::fill_n(below_.gradients.scale, below_.out, 0.0f);
    std::fill_n(below_.gradients.offset, below_.out, 0.0f);
    for (size_t block = 0; block < sums_.rows / 2; ++block) {
      kernels::add_column_sums({2 * block, 2 * block + 1}, sums_, below_.gradients.scale);
      kernels::add_column_sums({2 * block + 1, 2 * block + 2}, sums_, below_.gradients.offset);
    }
  }

 private:
  const Layer& below_;
  kernels::LayerNorm norm_;
  Matrix z_, sums_;
};

void add_rows(ConstMatrix from, Matrix to, RowRange rows) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < to.columns; ++c) to.row(r)[c] += from.row(r)[c];
}

void backward_aggregate_first(const Layer& layer, const Layer& below, const Step& step, LayerMemory& memory,
                              LayerMemory& below_memory, StepMemory& shared) {
  const Block& block = step.batch.block(layer.number);
  const size_t targets = block.forward.rows, sources = block.forward.columns;
  const ConstMatrix input(memory.input.data(), targets, layer.fan_in()), dz(memory.output.data(), targets, layer.out);
  const Matrix input_gradient(shared.input_gradient.data(), targets, layer.fan_in());
  const Matrix dh(shared.embedding_gradient.data(), sources, layer.in);
  const Matrix aggregated = input_gradient.columns_from(0, layer.in);
  const Matrix own = input_gradient.columns_from(layer.in, layer.fan_in());

  const RowBlocks row_blocks(targets), weight_blocks(layer.fan_in());
  parallel_blocks(row_blocks.count() + weight_blocks.count(), 1, [&](size_t i, size_t) {
    if (i >= row_blocks.count()) {
      const RowRange part = weight_blocks[i - row_blocks.count()];
      multiply_by_transpose_of(input.columns_from(part.begin, part.end), dz,
                               layer.gradients.weight.rows_from(part.begin, part.end));
      return;
    }
    const RowRange rows = row_blocks[i];
    multiply_transposed(dz.rows_from(rows.begin, rows.end), layer.values.weight,
                        input_gradient.rows_from(rows.begin, rows.end));
    if (step.dropout > 0) apply_dropout(step.mask(memory.aggregated_bits, layer.in), rows, aggregated, aggregated);
    if (!layer.concat) return;
    if (step.dropout > 0) apply_dropout(step.mask(memory.own_bits, layer.in), rows, own, own);
    if (layer.residual) add_rows(dh, own, rows);
  });

  // What a row starts from: the own part, or the residual's gradient, which is in dh already.
  ConstMatrix initial;
  if (layer.concat)
    initial = own;
  else if (layer.residual)
    initial = dh.rows_from(0, targets);
  const size_t passes = (sources + kPassRows - 1) / kPassRows;
  ActivationBackward activation(below, below_memory, shared, sources, passes);
  parallel_blocks(sources, kPassRows, [&](size_t begin, size_t end) {
    aggregate(block.backward, aggregated, {begin, end}, initial, {}, dh);
    activation.run(begin / kPassRows, {begin, end}, dh);
  });
  activation.finish();
}

void backward_project_first(const Layer& layer, const Layer& below, const Step& step, LayerMemory& memory,
                            LayerMemory& below_memory, StepMemory& shared) {
  const Block& block = step.batch.block(layer.number);
  const size_t targets = block.forward.rows, sources = block.forward.columns;
  const ConstMatrix input(memory.input.data(), sources, layer.in), dz(memory.output.data(), targets, layer.out);
  const Matrix projection_gradient(shared.projection.data(), sources, layer.out);
  const Matrix dh(shared.embedding_gradient.data(), sources, layer.in);
  parallel_blocks(sources, kPassRows, [&](size_t begin, size_t end) {
    aggregate(block.backward, dz, {begin, end}, {}, {}, projection_gradient);
  });

  const RowBlocks row_blocks(sources), weight_blocks(layer.in);
  ActivationBackward activation(below, below_memory, shared, sources, row_blocks.count());
  parallel_blocks(row_blocks.count() + weight_blocks.count(), 1, [&](size_t i, size_t) {
    if (i >= row_blocks.count()) {
      const auto [begin, end] = weight_blocks[i - row_blocks.count()];
      const ConstMatrix columns = input.columns_from(begin, end);
      multiply_by_transpose_of(columns, projection_gradient, layer.gradients.weight.rows_from(begin, end));
      if (layer.concat)
        multiply_by_transpose_of(columns.rows_from(0, targets), dz,
                                 layer.gradients.weight.rows_from(layer.in + begin, layer.in + end));
      return;
    }
    const RowRange rows = row_blocks[i];
    const size_t own_end = std::clamp(targets, rows.begin, rows.end);  // rows of this block that are targets too
    float keep = 0;
    if (layer.residual) {
      std::fill(dh.row(own_end), dh.row(rows.end), 0.0f);
      keep = 1;
    }
    multiply_transposed(projection_gradient.rows_from(rows.begin, rows.end), layer.aggregated_weight(),
                        dh.rows_from(rows.begin, rows.end), keep);
    if (layer.concat)
      multiply_transposed(dz.rows_from(rows.begin, own_end), layer.own_weight(), dh.rows_from(rows.begin, own_end), 1);
    activation.run(i, rows, dh);
  });
  activation.finish();
}

}  // namespace

void backward_convolution(const Layer& layer, const Layer& below, const Step& step, LayerMemory& memory,
                          LayerMemory& below_memory, StepMemory& shared) {
  backward_bias(layer, ConstMatrix(memory.output.data(), step.batch.rows_of_layer(layer.number), layer.out));
  if (memory.projected_first)
    backward_project_first(layer, below, step, memory, below_memory, shared);
  else
    backward_aggregate_first(layer, below, step, memory, below_memory, shared);
}

void backward_bias(const Layer& layer, ConstMatrix z_gradient) {
  if (layer.values.bias == nullptr) return;
  parallel_blocks(layer.out, 64, [&](size_t begin, size_t end) {
    std::fill_n(layer.gradients.bias + begin, end - begin, 0.0f);
    kernels::add_column_sums({0, z_gradient.rows}, z_gradient.columns_from(begin, end), layer.gradients.bias + begin);
  });
}

}  // namespace cgcn
