#include "nn/sparse_input.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/threads.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;

namespace {

size_t row_entries(const FeatureMatrix& features, NodeId v) {
  return features.kind() == FeatureMatrix::Kind::kIdentity ? 1 : features.row_columns(v).size();
}

uint64_t load_word(const uint8_t* bits, size_t word) {
  uint64_t value = 0;
  std::memcpy(&value, bits + 8 * word, sizeof value);
  return value;
}

// Of the first `size` bits.
uint32_t count_bits(const uint8_t* bits, size_t size) {
  uint32_t count = 0;
  for (size_t word = 0; word < size / 64; ++word) count += static_cast<uint32_t>(std::popcount(load_word(bits, word)));
  if (size % 64 > 0)
    count += static_cast<uint32_t>(std::popcount(load_word(bits, size / 64) & ((uint64_t{1} << size % 64) - 1)));
  return count;
}

// visit(i) for the bits begin + i that are set below `end`, in order; all of them if there are no bits.
template <class Visit>
void for_each_kept(const uint8_t* bits, size_t begin, size_t end, const Visit& visit) {
  if (bits == nullptr) {
    for (size_t i = 0; i < end - begin; ++i) visit(i);
    return;
  }
  for (size_t word = begin / 64; word * 64 < end; ++word) {
    uint64_t left = load_word(bits, word);
    if (word == begin / 64) left &= ~uint64_t{0} << begin % 64;
    for (; left != 0; left &= left - 1) {
      const size_t at = word * 64 + static_cast<size_t>(std::countr_zero(left));
      if (at >= end) return;
      visit(at - begin);
    }
  }
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
  visit(self.mask_places_, rows);
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

// Rows are written where those before them end without what was dropped, which adds nothing to a product: at a dropout
// of 0.8 a fifth is left to multiply. So masks are drawn and counted first.
void SparseInput::gather(const Step& step, uint32_t stream, const Rows& rows) {
  const auto inputs = step.batch.inputs;
  const size_t sources = inputs.size(), n = sources + (rows.stacked && rows.right != nullptr ? rows.targets : 0);
  const uint32_t in = rows.left.columns();
  const auto place = [&](size_t r) { return r < sources ? r : r - sources; };
  const auto left = [&](size_t r) { return r < sources ? row_entries(rows.left, inputs[r]) : 0; };
  const auto right = [&](size_t r) {
    const bool has_right = rows.right != nullptr && (!rows.stacked || r >= sources);
    return has_right ? row_entries(*rows.right, inputs[place(r)]) : 0;
  };
  offsets_.reserve_discarding(n + 1);
  offsets_[0] = 0;
  for (size_t r = 0; r < n; ++r) offsets_[r + 1] = offsets_[r] + left(r) + right(r);
  const uint32_t columns = in + (rows.right != nullptr ? rows.right->columns() : 0);
  reserve(n, offsets_[n], columns);
  for (size_t r = 0; r < n; ++r) mask_places_[r] = offsets_[r] / 8 + 8 * r;
  if (slots_.size() != columns) slots_.assign(columns, kNone);

  // One task names the rows of W, the others draw.
  parallel_for_each_block(1 + (n + kPassRows - 1) / kPassRows, BlockOrder::kAscending, [&](size_t task) {
    if (task == 0) return name_all_rows(rows, inputs);
    for (size_t r = (task - 1) * kPassRows; r < std::min(n, task * kPassRows); ++r) {
      const size_t entries = offsets_[r + 1] - offsets_[r], row = place(r);  // a node that comes twice is dropped alike
      kept_[r] = static_cast<uint32_t>(entries);
      if (step.dropout == 0) continue;
      uint8_t* const bits = &bits_[mask_places_[r]];
      draw_dropout(step.dropout_key(stream), step.dropout, {row, row + 1}, {0, entries}, {bits, 0});
      kept_[r] = count_bits(bits, entries);
    }
  });
  for (size_t r = 0; r < n; ++r) offsets_[r + 1] = offsets_[r] + kept_[r];

  const float scale = step.dropout > 0 ? kernels::dropout_scale(step.dropout) : 1;
  parallel_blocks(n, kPassRows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const uint8_t* const bits = step.dropout > 0 ? &bits_[mask_places_[r]] : nullptr;
      size_t at = offsets_[r];
      const auto write = [&](const FeatureMatrix& features, uint32_t first_column, size_t before) {
        const NodeId v = inputs[place(r)];
        if (features.kind() == FeatureMatrix::Kind::kIdentity)
          return for_each_kept(bits, before, before + 1, [&](size_t) {
            columns_[at] = first_column + v;
            values_[at++] = scale;
          });
        const auto row_columns = features.row_columns(v);
        const auto row_values = features.row_values(v);
        for_each_kept(bits, before, before + row_columns.size(), [&](size_t i) {
          columns_[at] = first_column + row_columns[i];
          values_[at++] = row_values[i] * scale;
        });
      };
      const size_t lefts = left(r);
      if (lefts > 0) write(rows.left, 0, 0);
      if (right(r) > 0) write(*rows.right, in, lefts);
    }
  });
  view_ = {static_cast<uint32_t>(n), columns, offsets_.data(), columns_.data(), values_.data()};
}

void SparseInput::multiply(const Linear& linear, bool with_bias, Matrix out) const {
  parallel_blocks(out.rows, kPassRows, [&](size_t begin, size_t end) {
    const bool begun = with_bias && linear.begin_tile(out.rows_from(begin, end), 0) != 0;
    kernels::aggregate(view_, linear.weight(), {begin, end}, out, begun ? ConstMatrix(out) : ConstMatrix());
  });
}

// Dropped entries name their row of W too: an optimiser that steps named rows alone steps these.
void SparseInput::name_all_rows(const Rows& rows, std::span<const NodeId> inputs) {
  named_.clear();
  name_rows(rows.left, inputs, 0);
  if (rows.right != nullptr)
    name_rows(*rows.right, rows.stacked ? inputs.first(rows.targets) : inputs, rows.left.columns());
  for (const uint32_t row : named_) slots_[row] = kNone;
}

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

void SparseInput::backward(const Linear& linear, kernels::ConstRows gradient) {
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
