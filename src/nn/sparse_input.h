// The batch's rows of sparse features, or of the identity, as a small sparse matrix over the rows of W, a component of
// layers: its products touch only the rows of W that it names.
#pragma once

#include <span>
#include <vector>

#include "common/buffer.h"
#include "nn/layer.h"
#include "nn/linear.h"

namespace cgcn {

class SparseInput {
 public:
  // Row r is [left, right] of the batch's input r, `right` at the rows of W from left.columns() on; null: left alone.
  // stacked: the inputs' rows of [left, 0], and below them those of [0, right] of the first `targets` inputs.
  struct Rows {
    const FeatureMatrix& left;
    const FeatureMatrix* right = nullptr;
    bool stacked = false;
    size_t targets = 0;
  };
  // With dropout. A dropout column is the place of an entry in its row: what is zero needs no dropping.
  void gather(const Step& step, uint32_t stream, const Rows& rows);
  size_t rows() const { return view_.rows; }

  // out = rows·W, and + b if with_bias.
  void multiply(const Linear& linear, bool with_bias, kernels::Matrix out) const;
  // dW = rowsᵀ·dout: rows of W that the batch names; those of the batch before that it does not name become zero.
  void backward(const Linear& linear, kernels::ConstRows gradient);
  std::span<const uint32_t> touched() const { return touched_; }
  void set_touched(std::span<const uint32_t> rows) { touched_.assign(rows.begin(), rows.end()); }
  uint64_t bytes() const;
  // What batches of so many rows and entries, of so many rows of W, take at most.
  static uint64_t planned_bytes(uint64_t rows, uint64_t entries, uint64_t columns);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // visit(buffer, elements) of each buffer, as large as such a batch needs it.
  template <class Self, class Visit>
  static void for_each_buffer(Self& self, uint64_t rows, uint64_t entries, uint64_t columns, Visit&& visit);
  void reserve(uint64_t rows, uint64_t entries, uint64_t columns);
  void name_all_rows(const Rows& rows, std::span<const NodeId> inputs);
  void name_rows(const FeatureMatrix& features, std::span<const NodeId> nodes, uint32_t first_column);
  void sort_touched();
  void transpose();

  Buffer<uint64_t> offsets_, transposed_offsets_;
  Buffer<uint64_t> mask_places_;  // in bits_, of each row
  Buffer<uint32_t> columns_, transposed_columns_;
  Buffer<float> values_, transposed_values_;
  Buffer<uint8_t> bits_;
  Buffer<uint32_t> kept_;                  // entries of each row that dropout keeps
  std::vector<uint32_t> named_;            // rows of W that the gathered rows name
  std::vector<uint32_t> slots_, touched_;  // row of W → place in touched_, the rows that the last gradient is of
  SparseView view_;
};

}  // namespace cgcn
