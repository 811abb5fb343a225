#include "graph/features.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/threads.h"

namespace cgcn {

float half_to_float(Half bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = (bits >> 10) & 0x1Fu, mantissa = bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: mantissa · 2⁻²⁴
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 0x7F800000u : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

Half float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) return static_cast<Half>(sign | 0x7C00u | (magnitude > 0x7F800000u ? 0x200u : 0));
  if (magnitude >= 0x477FF000u) return static_cast<Half>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: let the FPU round to a multiple of 2⁻²⁴
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<Half>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3F000000u));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<Half>(sign | ((rounded - 0x38000000u) >> 13));
}

FeatureMatrix FeatureMatrix::dense(SharedArray<float> values, uint32_t columns) {
  CGCN_CHECK(columns > 0 && values.size() % columns == 0);
  FeatureMatrix matrix;
  matrix.kind_ = Kind::kDense32;
  matrix.rows_ = static_cast<NodeId>(values.size() / columns);
  matrix.columns_ = columns;
  matrix.dense32_ = std::move(values);
  return matrix;
}

FeatureMatrix FeatureMatrix::dense16(SharedArray<Half> values, uint32_t columns) {
  CGCN_CHECK(columns > 0 && values.size() % columns == 0);
  FeatureMatrix matrix;
  matrix.kind_ = Kind::kDense16;
  matrix.rows_ = static_cast<NodeId>(values.size() / columns);
  matrix.columns_ = columns;
  matrix.dense16_ = std::move(values);
  return matrix;
}

FeatureMatrix FeatureMatrix::dense_bfloat16(SharedArray<BFloat16> values, uint32_t columns) {
  CGCN_CHECK(columns > 0 && values.size() % columns == 0);
  FeatureMatrix matrix;
  matrix.kind_ = Kind::kDenseBFloat16;
  matrix.rows_ = static_cast<NodeId>(values.size() / columns);
  matrix.columns_ = columns;
  matrix.dense_bfloat16_ = std::move(values);
  return matrix;
}

FeatureMatrix FeatureMatrix::sparse(SharedArray<EdgeOffset> offsets, SharedArray<uint32_t> columns,
                                    SharedArray<float> values, uint32_t num_columns) {
  CGCN_CHECK(!offsets.empty() && offsets[offsets.size() - 1] == columns.size() && columns.size() == values.size());
  FeatureMatrix matrix;
  matrix.kind_ = Kind::kSparse;
  matrix.rows_ = static_cast<NodeId>(offsets.size() - 1);
  matrix.columns_ = num_columns;
  matrix.offsets_ = std::move(offsets);
  matrix.sparse_columns_ = std::move(columns);
  matrix.sparse_values_ = std::move(values);
  return matrix;
}

FeatureMatrix FeatureMatrix::identity(NodeId size) {
  FeatureMatrix matrix;
  matrix.rows_ = matrix.columns_ = size;
  return matrix;
}

uint64_t FeatureMatrix::stored_bytes() const {
  return dense32_.size() * sizeof(float) + dense16_.size() * sizeof(Half) + dense_bfloat16_.size() * sizeof(BFloat16) +
         offsets_.size() * sizeof(EdgeOffset) + sparse_columns_.size() * (sizeof(uint32_t) + sizeof(float));
}

uint64_t FeatureMatrix::num_entries() const {
  return kind_ == Kind::kSparse     ? sparse_columns_.size()
         : kind_ == Kind::kIdentity ? rows_
                                    : uint64_t{rows_} * columns_;
}

void FeatureMatrix::release_rows(size_t begin, size_t end) const {
  if (kind_ == Kind::kDense32) {
    dense32_.release(begin * columns_, end * columns_);
  } else if (kind_ == Kind::kDense16) {
    dense16_.release(begin * columns_, end * columns_);
  } else if (kind_ == Kind::kDenseBFloat16) {
    dense_bfloat16_.release(begin * columns_, end * columns_);
  } else if (kind_ == Kind::kSparse) {
    sparse_columns_.release(offsets_[begin], offsets_[end]);
    sparse_values_.release(offsets_[begin], offsets_[end]);
  }
}

void FeatureMatrix::copy_columns(NodeId v, size_t begin, size_t count, float* out) const {
  const size_t first = size_t{v} * columns_ + begin;
  if (kind_ == Kind::kDense32) {
    std::copy_n(dense32_.data() + first, count, out);
  } else if (kind_ == Kind::kDenseBFloat16) {
    for (size_t j = 0; j < count; ++j) out[j] = to_float(dense_bfloat16_[first + j]);
  } else {
    CGCN_CHECK(kind_ == Kind::kDense16);
    const Half* row = dense16_.data() + first;
    for (size_t j = 0; j < count; ++j) out[j] = half_to_float(row[j]);
  }
}

void divide_by_sum(std::span<float> row) {
  double sum = 0;
  for (const float value : row) sum += value;
  if (sum == 0) return;
  for (float& value : row) value = static_cast<float>(value / sum);
}

FeatureMatrix FeatureMatrix::with_normalised_rows() const {
  if (kind_ == Kind::kIdentity) return *this;
  Buffer<float> values(num_entries());
  parallel_blocks(rows_, 1024, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v) {
      const size_t first = is_dense() ? v * columns_ : offsets_[v],
                   last = is_dense() ? first + columns_ : offsets_[v + 1];
      if (is_dense())
        copy_row(static_cast<NodeId>(v), values.data() + first);
      else
        std::copy_n(sparse_values_.data() + first, last - first, values.data() + first);
      divide_by_sum({values.data() + first, last - first});
    }
    release_rows(begin, end);  // the copy takes their place
  });
  if (is_dense()) return dense(std::move(values), columns_);
  return sparse(offsets_, sparse_columns_, std::move(values), columns_);
}

uint64_t FeatureMatrix::normalised_bytes() const {
  return kind_ == Kind::kIdentity ? 0 : num_entries() * sizeof(float);
}

FeatureMatrix FeatureMatrix::rounded() const {
  if (!is_dense()) return *this;
  Buffer<BFloat16> values(size_t{rows_} * columns_);
  parallel_blocks(rows_, 1024, [&](size_t begin, size_t end) {
    std::vector<float> row(columns_);
    for (size_t v = begin; v < end; ++v) {
      copy_row(static_cast<NodeId>(v), row.data());
      for (size_t c = 0; c < columns_; ++c) values[v * columns_ + c] = to_bfloat16(row[c]);
    }
  });
  return dense_bfloat16(std::move(values), columns_);
}

}  // namespace cgcn
