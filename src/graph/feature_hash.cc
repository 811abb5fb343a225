#include "graph/feature_hash.h"

#include <vector>

#include "common/hash.h"
#include "common/threads.h"
#include "graph/npy.h"

namespace cgcn {
namespace {

constexpr size_t kHashedRows = 4096;  // part of what the hash is: it hashes the hashes of blocks

// An array of a store, mapped; ranges that were read are let go.
template <class T>
class MappedArray {
 public:
  explicit MappedArray(const fs::path& path) : file_(path) {}
  const T* data() const { return reinterpret_cast<const T*>(file_.bytes().data() + kNpyHeaderBytes); }
  void release(uint64_t first, uint64_t count) const {
    file_.release(kNpyHeaderBytes + first * sizeof(T), count * sizeof(T));
  }

 private:
  MappedFile file_;
};

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

template <class T, class ToFloat>
void hash_dense(const fs::path& path, NodeId rows, uint32_t columns, std::vector<uint64_t>& digests,
                ToFloat&& to_float) {
  const MappedArray<T> features(path);
  parallel_blocks(rows, kHashedRows, [&](size_t begin, size_t end) {
    RowHasher hasher;
    for (size_t row = begin; row < end; ++row) {
      const T* values = features.data() + row * columns;
      for (uint32_t column = 0; column < columns; ++column) hasher.add(column, to_float(values[column]));
      hasher.end_row();
    }
    digests[begin / kHashedRows] = hasher.digest();
    features.release(begin * columns, (end - begin) * columns);
  });
}

void hash_sparse(const fs::path& folder, NodeId rows, std::vector<uint64_t>& digests) {
  const MappedArray<EdgeOffset> offsets(folder / "features_offsets.npy");
  const MappedArray<uint32_t> columns(folder / "features_columns.npy");
  const MappedArray<float> values(folder / "features_values.npy");
  parallel_blocks(rows, kHashedRows, [&](size_t begin, size_t end) {
    RowHasher hasher;
    for (size_t row = begin; row < end; ++row) {
      for (EdgeOffset i = offsets.data()[row]; i < offsets.data()[row + 1]; ++i)
        hasher.add(columns.data()[i], values.data()[i]);
      hasher.end_row();
    }
    digests[begin / kHashedRows] = hasher.digest();
    const EdgeOffset first = offsets.data()[begin], count = offsets.data()[end] - first;
    columns.release(first, count);
    values.release(first, count);
  });
}

}  // namespace

std::string hash_feature_files(const fs::path& folder, FeatureMatrix::Kind kind, NodeId rows, uint32_t columns) {
  std::vector<uint64_t> digests((size_t{rows} + kHashedRows - 1) / kHashedRows);
  switch (kind) {
    case FeatureMatrix::Kind::kIdentity:
      return "identity";
    case FeatureMatrix::Kind::kDense32:
      hash_dense<float>(folder / "features.npy", rows, columns, digests, [](float value) { return value; });
      break;
    case FeatureMatrix::Kind::kDense16:
      hash_dense<Half>(folder / "features.npy", rows, columns, digests, half_to_float);
      break;
    case FeatureMatrix::Kind::kSparse:
      hash_sparse(folder, rows, digests);
      break;
  }
  return Hasher().add_value(columns).add(digests.data(), digests.size() * sizeof(uint64_t)).digest128_hex();
}

}  // namespace cgcn
