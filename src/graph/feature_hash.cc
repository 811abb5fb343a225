#include "graph/feature_hash.h"

#include <vector>

#include "common/hash.h"
#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kHashedRows = 4096;  // part of what the hash is: it hashes the hashes of blocks

// The non-zeros of a run of rows: for each row how many there are, then columns, then values.
class RowHasher {
 public:
  void add(uint32_t column, float value) {
    if (value == 0) return;
    columns_.push_back(column);
    values_.push_back(value);
  }
  void end_row() {
    hasher_.add_value(static_cast<uint32_t>(columns_.size()));
    hasher_.add(columns_.data(), columns_.size() * sizeof(uint32_t));
    hasher_.add(values_.data(), values_.size() * sizeof(float));
    columns_.clear();
    values_.clear();
  }
  uint64_t digest() const { return hasher_.digest64(); }

 private:
  Hasher hasher_;
  std::vector<uint32_t> columns_;
  std::vector<float> values_;
};

}  // namespace

std::string hash_features(const FeatureMatrix& features) {
  if (features.kind() == FeatureMatrix::Kind::kIdentity) return "identity";
  const NodeId rows = features.rows();
  const uint32_t columns = features.columns();
  std::vector<uint64_t> digests((size_t{rows} + kHashedRows - 1) / kHashedRows);
  parallel_blocks(rows, kHashedRows, [&](size_t begin, size_t end) {
    RowHasher hasher;
    std::vector<float> dense(features.is_dense() ? columns : 0);
    for (size_t row = begin; row < end; ++row) {
      const auto v = static_cast<NodeId>(row);
      if (features.is_dense()) {
        features.copy_row(v, dense.data());
        for (uint32_t column = 0; column < columns; ++column) hasher.add(column, dense[column]);
      } else {
        const auto row_columns = features.row_columns(v);
        const auto row_values = features.row_values(v);
        for (size_t i = 0; i < row_columns.size(); ++i) hasher.add(row_columns[i], row_values[i]);
      }
      hasher.end_row();
    }
    digests[begin / kHashedRows] = hasher.digest();
    features.release_rows(begin, end);
  });
  return Hasher().add_value(columns).add(digests.data(), digests.size() * sizeof(uint64_t)).digest128_hex();
}

}  // namespace cgcn
