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
  rows.lay_out(matrix_, ids.size(), 0);
  const auto gather = [&]<class T>(std::span<const T> memory) {
    T* out = reinterpret_cast<T*>(rows.dense_);
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
  uint64_t entries = 0;
  for (const NodeId id : ids) entries += offsets[size_t{id} + 1] - offsets[id];
  rows.lay_out(matrix_, ids.size(), entries);
  rows.offsets_[0] = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    rows.offsets_[i + 1] = rows.offsets_[i] + offsets[size_t{ids[i]} + 1] - offsets[ids[i]];
  for_each_run(ids, [&](size_t begin, size_t end) {
    const uint64_t first = offsets[ids[begin]], count = rows.offsets_[end] - rows.offsets_[begin];
    fetch(first_.get(), matrix_.sparse_columns(), first, count, rows.columns_ + rows.offsets_[begin]);
    fetch(second_.get(), matrix_.sparse_values(), first, count, rows.values_ + rows.offsets_[begin]);
  });
  if (first_ != nullptr)  // what was checked when the store was opened may have changed since
    for (uint64_t e = 0; e < entries; ++e)
      if (rows.columns_[e] >= matrix_.columns()) throw Error("a column is out of range", first_->path().string());
  const std::shared_ptr<const void> nobody;
  rows.matrix = FeatureMatrix::sparse({{rows.offsets_, ids.size() + 1}, nobody}, {{rows.columns_, entries}, nobody},
                                      {{rows.values_, entries}, nobody}, matrix_.columns());
}

void FeatureReader::Rows::place(const FeatureMatrix& like, uint64_t rows, uint64_t entries) {
  if (like.is_dense()) {
    const bool floats = like.kind() == FeatureMatrix::Kind::kDense32;
    dense_ = memory_.take<char>(rows * like.columns() * (floats ? sizeof(float) : sizeof(Half)));
    return;
  }
  offsets_ = memory_.take<EdgeOffset>(rows + 1);
  columns_ = memory_.take<uint32_t>(entries);
  values_ = memory_.take<float>(entries);
}

uint64_t FeatureReader::buffer_bytes(const FeatureMatrix& matrix, uint64_t rows, uint64_t entries) {
  Rows counted;
  counted.memory_.count([&] { counted.place(matrix, rows, entries); });
  return counted.memory_.bytes();
}

}  // namespace cgcn
