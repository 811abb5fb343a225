#include "graph/feature_reader.h"

#include <cstring>

#include "graph/npy.h"
#include "graph/store.h"

namespace cgcn {
namespace {

// Calls use(i, end) for runs ids[i … end) of neighbouring rows.
template <class Use>
void for_each_run(std::span<const NodeId> ids, Use&& use) {
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    for (end = begin + 1; end < ids.size() && ids[end] == ids[end - 1] + 1;) ++end;
    use(begin, end);
  }
}

// Elements first … first + count of an array: from its file, or from memory if there is none.
template <class T>
void fetch(const InputFile* file, std::span<const T> memory, uint64_t first, uint64_t count, T* out) {
  if (count == 0) return;
  if (file != nullptr)
    file->read(kNpyHeaderBytes + first * sizeof(T), out, count * sizeof(T));
  else
    std::memcpy(out, memory.data() + first, count * sizeof(T));
}

}  // namespace

FeatureReader::FeatureReader(FeatureMatrix matrix, const fs::path& store) : matrix_(std::move(matrix)) {
  const auto open = [&](const char* name) { return std::make_shared<const InputFile>(array_file(store, name)); };
  if (matrix_.is_dense()) {
    first_ = open("features");
  } else {
    first_ = open("features_columns");
    second_ = open("features_values");
  }
}

void FeatureReader::read(std::span<const NodeId> ids, Rows& rows) const {
  if (matrix_.is_dense())
    read_dense(ids, rows);
  else
    read_sparse(ids, rows);
}

void FeatureReader::read_dense(std::span<const NodeId> ids, Rows& rows) const {
  const size_t width = matrix_.columns();
  const auto gather = [&]<class T>(std::span<const T> memory) {
    rows.dense.reserve_discarding(ids.size() * width * sizeof(T));
    T* out = reinterpret_cast<T*>(rows.dense.data());
    for_each_run(ids, [&](size_t begin, size_t end) {
      fetch<T>(first_.get(), memory, ids[begin] * width, (end - begin) * width, out + begin * width);
    });
    return SharedArray<T>({out, ids.size() * width}, std::shared_ptr<const void>());
  };
  switch (matrix_.kind()) {
    case FeatureMatrix::Kind::kDense32:
      rows.matrix = FeatureMatrix::dense(gather(matrix_.dense32()), matrix_.columns());
      return;
    case FeatureMatrix::Kind::kDense16:
      rows.matrix = FeatureMatrix::dense16(gather(matrix_.dense16()), matrix_.columns());
      return;
    default:
      rows.matrix = FeatureMatrix::dense_bfloat16(gather(matrix_.dense_bfloat16()), matrix_.columns());
  }
}

void FeatureReader::read_sparse(std::span<const NodeId> ids, Rows& rows) const {
  CGCN_CHECK(matrix_.kind() == FeatureMatrix::Kind::kSparse);
  const auto offsets = matrix_.sparse_offsets();
  rows.offsets.reserve_discarding(ids.size() + 1);
  rows.offsets[0] = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    rows.offsets[i + 1] = rows.offsets[i] + offsets[size_t{ids[i]} + 1] - offsets[ids[i]];
  const uint64_t entries = rows.offsets[ids.size()];
  rows.columns.reserve_discarding(entries);
  rows.values.reserve_discarding(entries);
  for_each_run(ids, [&](size_t begin, size_t end) {
    const uint64_t first = offsets[ids[begin]], count = rows.offsets[end] - rows.offsets[begin];
    fetch(first_.get(), matrix_.sparse_columns(), first, count, rows.columns.data() + rows.offsets[begin]);
    fetch(second_.get(), matrix_.sparse_values(), first, count, rows.values.data() + rows.offsets[begin]);
  });
  if (first_ != nullptr)  // what was checked when the store was opened may have changed since
    for (uint64_t e = 0; e < entries; ++e)
      if (rows.columns[e] >= matrix_.columns()) throw Error("a column is out of range", first_->path().string());
  const std::shared_ptr<const void> nobody;
  rows.matrix =
      FeatureMatrix::sparse({{rows.offsets.data(), ids.size() + 1}, nobody}, {{rows.columns.data(), entries}, nobody},
                            {{rows.values.data(), entries}, nobody}, matrix_.columns());
}

uint64_t FeatureReader::buffer_bytes(const FeatureMatrix& matrix, uint64_t rows, uint64_t entries) {
  switch (matrix.kind()) {
    case FeatureMatrix::Kind::kDense32:
      return rows * matrix.columns() * sizeof(float);
    case FeatureMatrix::Kind::kDense16:
      return rows * matrix.columns() * sizeof(Half);
    case FeatureMatrix::Kind::kDenseBFloat16:
      return rows * matrix.columns() * sizeof(BFloat16);
    default:
      return (rows + 1) * sizeof(EdgeOffset) + entries * (sizeof(uint32_t) + sizeof(float));
  }
}

}  // namespace cgcn
