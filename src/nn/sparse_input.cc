#include "nn/sparse_input.h"

#include <algorithm>
#include <utility>

#include "common/threads.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::DropoutMask;
using kernels::Matrix;

namespace {

size_t row_entries(const FeatureMatrix& features, NodeId v) {
  return features.kind() == FeatureMatrix::Kind::kIdentity ? 1 : features.row_columns(v).size();
}

// The row's entries that `keeps` keeps, scaled; keeps(i) is asked for i from 0 on. How many were written.
template <class Keeps>
size_t write_row(const FeatureMatrix& features, NodeId v, uint32_t first_column, float scale, const Keeps& keeps,
                 uint32_t* columns, float* values) {
  if (features.kind() == FeatureMatrix::Kind::kIdentity) {
    columns[0] = first_column + v;
    values[0] = scale;
    return keeps(0);
  }
  const auto row_columns = features.row_columns(v);
  const auto row_values = features.row_values(v);
  size_t kept = 0;
  for (size_t i = 0; i < row_columns.size(); ++i) {
    columns[kept] = first_column + row_columns[i];
    values[kept] = row_values[i] * scale;
    kept += keeps(i);
  }
  return kept;
}

}  // namespace

template <class Self, class Visit>
void SparseInput::for_each_buffer(Self& self, uint64_t rows, uint64_t entries, uint64_t columns, Visit&& visit) {
  const uint64_t named = std::min(columns, entries);
  visit(self.offsets_, rows + 1);
  visit(self.columns_, entries);
  visit(self.values_, entries);
  visit(self.bits_, entries / 8 + 8 * (rows + 2));
  visit(self.kept_, rows);
  visit(self.slots_, columns);
  visit(self.named_, named);
  visit(self.touched_, named);
  visit(self.transposed_offsets_, named + 2);
  visit(self.transposed_columns_, entries);
  visit(self.transposed_values_, entries);
}

// Room for a batch; offsets_ have theirs already, and what they hold.
void SparseInput::reserve(uint64_t rows, uint64_t entries, uint64_t columns) {
  for_each_buffer(*this, rows, entries, columns, [](auto& buffer, uint64_t size) {
    if constexpr (requires { buffer.capacity(); })
      buffer.reserve(size);
    else
      buffer.reserve_discarding(size);
  });
}

uint64_t SparseInput::planned_bytes(uint64_t rows, uint64_t entries, uint64_t columns) {
  uint64_t total = 0;
  const SparseInput none;
  for_each_buffer(none, rows, entries, columns,
                  [&](const auto& buffer, uint64_t size) { total += size * sizeof(buffer[0]); });
  return total;
}

uint64_t SparseInput::bytes() const {
  uint64_t total = 0;
  for_each_buffer(*this, 0, 0, 0, [&](const auto& buffer, uint64_t) {
    if constexpr (requires { buffer.capacity(); })
      total += buffer.capacity() * sizeof(buffer[0]);
    else
      total += buffer.size() * sizeof(buffer[0]);
  });
  return total;
}

void SparseInput::gather(const Step& step, uint32_t stream, const Rows& rows) {
  const auto inputs = step.batch.inputs;
  const size_t sources = inputs.size(), n = sources + (rows.stacked && rows.right != nullptr ? rows.targets : 0);
  const uint32_t in = rows.left.columns();
  const auto node = [&](size_t r) { return inputs[r < sources ? r : r - sources]; };
  const auto left = [&](size_t r) { return r < sources ? row_entries(rows.left, node(r)) : 0; };
  const auto right = [&](size_t r) {
    const bool has_right = rows.right != nullptr && (!rows.stacked || r >= sources);
    return has_right ? row_entries(*rows.right, node(r)) : 0;
  };
  offsets_.reserve_discarding(n + 1);
  offsets_[0] = 0;
  for (size_t r = 0; r < n; ++r) offsets_[r + 1] = offsets_[r] + left(r) + right(r);
  const uint32_t columns = in + (rows.right != nullptr ? rows.right->columns() : 0);
  reserve(n, offsets_[n], columns);
  parallel_blocks(n, kPassRows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const size_t first = offsets_[r], lefts = left(r), entries = offsets_[r + 1] - first;
      DropoutMask mask;
      if (step.dropout > 0) {
        mask = {&bits_[first / 8 + 8 * r], 0, kernels::dropout_scale(step.dropout)};
        const size_t row = r < sources ? r : r - sources;  // a node that comes twice is dropped alike
        draw_dropout(step.dropout_key(stream), step.dropout, {row, row + 1}, {0, entries}, mask);
      }
      size_t place = first;
      const auto write = [&](const FeatureMatrix& features, uint32_t first_column, size_t before) {
        const auto keeps = [&](size_t i) { return mask.keeps(r, before + i); };
        place += write_row(features, node(r), first_column, mask.scale, keeps, &columns_[place], &values_[place]);
      };
      if (lefts > 0) write(rows.left, 0, 0);
      if (entries > lefts) write(*rows.right, in, lefts);
      kept_[r] = static_cast<uint32_t>(place - first);
    }
  });
  if (slots_.size() != columns) slots_.assign(columns, kNone);
  named_.clear();
  name_rows(rows.left, inputs, 0);
  if (rows.right != nullptr) name_rows(*rows.right, rows.stacked ? inputs.first(rows.targets) : inputs, in);
  for (const uint32_t row : named_) slots_[row] = kNone;
  if (step.dropout > 0) leave_out_dropped(n);
  view_ = {static_cast<uint32_t>(n), columns, offsets_.data(), columns_.data(), values_.data()};
}

void SparseInput::multiply(const Linear& linear, bool with_bias, Matrix out) const {
  parallel_blocks(out.rows, kPassRows, [&](size_t begin, size_t end) {
    const bool begun = with_bias && linear.begin_tile(out.rows_from(begin, end), 0) != 0;
    kernels::aggregate(view_, linear.weight(), {begin, end}, out, begun ? ConstMatrix(out) : ConstMatrix());
  });
}

// Dropped entries name their row of W too: an optimiser that steps named rows alone steps these.
void SparseInput::name_rows(const FeatureMatrix& features, std::span<const NodeId> nodes, uint32_t first_column) {
  const auto name = [&](uint32_t row) {
    if (slots_[row] != kNone) return;
    slots_[row] = 0;
    named_.push_back(row);
  };
  for (const NodeId v : nodes)
    if (features.kind() == FeatureMatrix::Kind::kIdentity)
      name(first_column + v);
    else
      for (const uint32_t column : features.row_columns(v)) name(first_column + column);
}

// What was dropped adds nothing to a product: at a dropout of 0.8 a fifth is left to multiply.
void SparseInput::leave_out_dropped(size_t rows) {
  uint64_t kept = 0, begin = 0;
  for (size_t r = 0; r < rows; ++r) {
    std::copy_n(&columns_[begin], kept_[r], &columns_[kept]);
    std::copy_n(&values_[begin], kept_[r], &values_[kept]);
    kept += kept_[r];
    begin = std::exchange(offsets_[r + 1], kept);
  }
}

// They are marked in slots_: if the batch names many, a look at all rows of W finds them in order.
void SparseInput::sort_touched() {
  if (touched_.size() < slots_.size() / 8) return std::sort(touched_.begin(), touched_.end());
  touched_.clear();
  for (uint32_t row = 0; row < slots_.size(); ++row)
    if (slots_[row] != kNone) touched_.push_back(row);
}

void SparseInput::transpose() {
  const size_t entries = view_.num_entries();
  sort_touched();
  for (size_t t = 0; t < touched_.size(); ++t) slots_[touched_[t]] = static_cast<uint32_t>(t);

  std::fill_n(transposed_offsets_.data(), touched_.size() + 2, uint64_t{0});
  for (size_t i = 0; i < entries; ++i) ++transposed_offsets_[slots_[columns_[i]] + 2];
  for (size_t t = 2; t < touched_.size() + 2; ++t) transposed_offsets_[t] += transposed_offsets_[t - 1];
  for (uint32_t r = 0; r < view_.rows; ++r)
    for (uint64_t i = offsets_[r]; i < offsets_[r + 1]; ++i) {
      const uint64_t place = transposed_offsets_[slots_[columns_[i]] + 1]++;
      transposed_columns_[place] = r;
      transposed_values_[place] = values_[i];
    }
  for (const uint32_t row : touched_) slots_[row] = kNone;
}

void SparseInput::backward(const Linear& linear, ConstMatrix gradient) {
  const Matrix weight_gradient = linear.weight_gradient();
  for (const uint32_t row : named_) slots_[row] = 0;
  parallel_blocks(touched_.size(), kPassRows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t)
      if (slots_[touched_[t]] == kNone) std::fill_n(weight_gradient.row(touched_[t]), linear.out(), 0.0f);
  });
  std::swap(touched_, named_);
  transpose();
  parallel_blocks(touched_.size(), kPassRows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const SparseView row{1, view_.rows, &transposed_offsets_[t], transposed_columns_.data(),
                           transposed_values_.data()};
      kernels::aggregate(row, gradient, {0, 1}, Matrix(weight_gradient.row(touched_[t]), 1, linear.out()));
    }
  });
}

}  // namespace cgcn
