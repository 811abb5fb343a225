#include "nn/linear.h"

#include <algorithm>

#include "common/threads.h"
#include "kernels/activation.h"
#include "kernels/dropout.h"
#include "kernels/parallel.h"
#include "nn/layer.h"

namespace cgcn {

using kernels::ConstHalfMatrix;
using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::Matrix;
using kernels::PackedMatrix;
using kernels::RowRange;
using kernels::Rows;
using kernels::Tiles;

namespace {

constexpr size_t kPackedColumns = 64;  // that a thread packs at once

}  // namespace

Linear::Linear(const std::string& layer, size_t in, size_t out, bool bias, Parameters& parameters)
    : in_(in), out_(out), weight_(parameters, layer + ".weight", in, out, Initial::kGlorot) {
  if (bias) bias_ = OwnParameter(parameters, layer + ".bias", 1, out, Initial::kZero);
}

void Linear::plan(Workspace& workspace, size_t rows, size_t bytes, size_t parts) {
  workspace_ = &workspace;
  parts_ = parts;
  input_ = workspace.take<char>(std::max(workspace.row_bytes(rows, in_), bytes));
  if (is_half()) {
    workspace.share_packed(PackedMatrix::elements(in_, out_));
    workspace.share_packed(parts_ * PackedMatrix::elements(out_, part_columns()) + PackedMatrix::elements(rows, out_));
  }
}

void Linear::forward(Matrix z) const {
  if (is_half()) return forward_half(z);
  const ConstMatrix c = input(z.rows).floats(), w = weight();
  kernels::parallel_product(z, [&](RowRange rows, size_t column, Matrix tile) {
    multiply_first(c.rows_from(rows.begin, rows.end), w.columns_from(column, column + tile.columns), column, tile);
  });
}

void Linear::forward_half(Matrix z) const {
  pack(workspace_->packed());
  const ConstHalfMatrix c = input(z.rows).halves();
  const PackedMatrix w{workspace_->packed(), in_, out_};
  const Tiles tiles = Tiles::of_rows(z.rows, out_, column_unit());
  kernels::parallel_tiles(tiles.count(), [&](size_t i) {
    const auto [row, row_end] = tiles.rows(i);
    const auto [column, column_end] = tiles.columns(i);
    multiply(c.rows_from(row, row_end), w.columns_from(column, column_end), z.tile(row, row_end, column, column_end),
             bias() != nullptr ? bias() + column : nullptr);
  });
}

void Linear::pack_weight(ConstMatrix weight, BFloat16* packed) {
  parallel_blocks(weight.columns, kPackedColumns, [&](size_t begin, size_t end) {
    kernels::pack(weight, {begin, end}, packed);
  });
}

void Linear::infer(ConstHalfMatrix c, const BFloat16* packed, Matrix z) const {
  kernels::multiply(c, PackedMatrix{packed, in_, out_}, z, bias());
}

void Linear::multiply_first(ConstMatrix rows, ConstMatrix w, size_t column, Matrix z_tile) const {
  if (bias() != nullptr)
    kernels::multiply_and_add(rows, w, bias() + column, z_tile);
  else
    kernels::multiply(rows, w, z_tile);
}

float Linear::begin_tile(Matrix z_tile, size_t first_column) const {
  if (bias() == nullptr) return 0;
  for (size_t r = 0; r < z_tile.rows; ++r) std::copy_n(bias() + first_column, z_tile.columns, z_tile.row(r));
  return 1;
}

Rows Linear::ready(Rows z_gradient) const {
  if (z_gradient.is_half() || !is_half()) return z_gradient;
  const Matrix dz = z_gradient.floats();
  const Rows rounded = halves_of(dz);
  kernels::parallel_rows(dz.rows, kPassRows, [&](RowRange rows) { kernels::apply_dropout({}, rows, dz, rounded); });
  return rounded;
}

void Linear::backward(ConstRows z_gradient) const {
  backward_bias(z_gradient);
  begin_backward(z_gradient);
  kernels::parallel_tiles(weight_tiles().count(), [&](size_t i) { backward_tile(i, z_gradient); });
}

void Linear::backward_bias(ConstRows z_gradient) const {
  if (!bias_.exists()) return;
  float* gradient = bias_.gradient().data;
  parallel_blocks(out_, 64, [&](size_t begin, size_t end) {
    std::fill_n(gradient + begin, end - begin, 0.0f);
    kernels::add_column_sums({0, z_gradient.rows}, z_gradient.columns_from(begin, end), gradient + begin);
  });
}

void Linear::begin_backward(ConstRows z_gradient) const {
  if (!is_half()) return;
  const size_t columns = part_columns(), blocks = (columns + kPackedColumns - 1) / kPackedColumns;
  const size_t own_blocks = (out_ + kPackedColumns - 1) / kPackedColumns;
  const auto range = [](size_t block, size_t size) {
    return RowRange{block * kPackedColumns, std::min(size, (block + 1) * kPackedColumns)};
  };
  parallel_for_each_block(own_blocks + parts_ * blocks, BlockOrder::kNeighbours, [&](size_t i) {
    if (i < own_blocks) return kernels::pack(z_gradient.halves(), range(i, out_), packed_gradient());
    const size_t part = (i - own_blocks) / blocks, first = part * columns;
    kernels::pack_transposed(weight().rows_from(first, first + columns), range((i - own_blocks) % blocks, columns),
                             packed_transposed(part));
  });
}

Tiles Linear::weight_tiles() const { return Tiles::of_weights(in_, out_, column_unit()); }

void Linear::backward_tile(size_t tile, ConstRows z_gradient) const {
  const Tiles tiles = weight_tiles();
  const auto [row, row_end] = tiles.rows(tile);
  const auto [column, column_end] = tiles.columns(tile);
  const ConstRows c = ConstRows(input(z_gradient.rows)).columns_from(row, row_end);
  const Matrix to = weight_gradient().tile(row, row_end, column, column_end);
  if (is_half()) {
    const PackedMatrix dz{packed_gradient(), z_gradient.rows, out_};
    return kernels::multiply_by_transpose_of(c.halves(), dz.columns_from(column, column_end), to);
  }
  multiply_by_transpose_of(c.floats(), z_gradient.floats().columns_from(column, column_end), to);
}

void Linear::backward_input(ConstRows z_gradient_rows, size_t part, RowRange columns, Rows to) const {
  if (is_half()) {
    const PackedMatrix transposed{packed_transposed(part), out_, part_columns()};
    return multiply(z_gradient_rows.halves(), transposed.columns_from(columns.begin, columns.end), to);
  }
  const size_t first = part * part_columns();
  multiply_transposed(z_gradient_rows.floats(), weight().rows_from(first + columns.begin, first + columns.end),
                      to.floats());
}

}  // namespace cgcn
