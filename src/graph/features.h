// The feature matrix X (or a product A·X): dense in float32, float16 or bfloat16, sparse rows, or the identity, which
// stands for “no features” and takes no space (row v is the unit vector of v, as for the paper's Amazon).
#pragma once

#include <cstdint>
#include <span>

#include "common/bfloat16.h"
#include "common/shared_array.h"
#include "graph/csr_graph.h"

namespace cgcn {

using Half = uint16_t;  // the bits of an IEEE 754 binary16

float half_to_float(Half bits);
Half float_to_half(float value);  // to nearest, ties to even

void divide_by_sum(std::span<float> row);  // a row of sum zero is left as it is

class FeatureMatrix {
 public:
  enum class Kind { kDense32, kDense16, kDenseBFloat16, kSparse, kIdentity };

  FeatureMatrix() = default;  // the identity of size 0
  static FeatureMatrix dense(SharedArray<float> values, uint32_t columns);
  static FeatureMatrix dense16(SharedArray<Half> values, uint32_t columns);
  static FeatureMatrix dense_bfloat16(SharedArray<BFloat16> values, uint32_t columns);
  // Rows of (column, value); columns within a row rise.
  static FeatureMatrix sparse(SharedArray<EdgeOffset> offsets, SharedArray<uint32_t> columns, SharedArray<float> values,
                              uint32_t num_columns);
  static FeatureMatrix identity(NodeId size);

  // Every row divided by its sum; what is dense becomes float32. Mapped pages are given back block by block.
  FeatureMatrix with_normalised_rows() const;
  uint64_t normalised_bytes() const;  // that its copy takes; columns of sparse rows are shared
  // Dense in bfloat16; sparse ones as they are.
  FeatureMatrix rounded() const;

  Kind kind() const { return kind_; }
  bool is_dense() const { return kind_ != Kind::kSparse && kind_ != Kind::kIdentity; }
  NodeId rows() const { return rows_; }
  uint32_t columns() const { return columns_; }
  uint64_t stored_bytes() const;
  uint64_t num_entries() const;  // non-zeros if sparse, rows × columns if dense

  // Gives back the mapped pages of these rows.
  void release_rows(size_t begin, size_t end) const;

  // Dense kinds: row v as float32 into out[0 … columns).
  void copy_row(NodeId v, float* out) const { copy_columns(v, 0, columns_, out); }
  void copy_columns(NodeId v, size_t begin, size_t count, float* out) const;
  // kDense32 only: the row where it lies.
  std::span<const float> dense_row(NodeId v) const { return dense32_.span().subspan(size_t{v} * columns_, columns_); }
  // kSparse only.
  std::span<const uint32_t> row_columns(NodeId v) const {
    return sparse_columns_.span().subspan(offsets_[v], offsets_[v + 1] - offsets_[v]);
  }
  std::span<const float> row_values(NodeId v) const {
    return sparse_values_.span().subspan(offsets_[v], offsets_[v + 1] - offsets_[v]);
  }

  std::span<const float> dense32() const { return dense32_; }
  std::span<const Half> dense16() const { return dense16_; }
  std::span<const BFloat16> dense_bfloat16() const { return dense_bfloat16_; }
  std::span<const EdgeOffset> sparse_offsets() const { return offsets_; }
  std::span<const uint32_t> sparse_columns() const { return sparse_columns_; }
  std::span<const float> sparse_values() const { return sparse_values_; }

 private:
  Kind kind_ = Kind::kIdentity;
  NodeId rows_ = 0;
  uint32_t columns_ = 0;
  SharedArray<float> dense32_;
  SharedArray<Half> dense16_;
  SharedArray<BFloat16> dense_bfloat16_;
  SharedArray<EdgeOffset> offsets_;
  SharedArray<uint32_t> sparse_columns_;
  SharedArray<float> sparse_values_;
};

}  // namespace cgcn
