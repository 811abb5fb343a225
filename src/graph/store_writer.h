// Writes a graph store (store.h): array by array, next to its place, and renamed when it is complete.
#pragma once

#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/file.h"
#include "common/hash.h"
#include "graph/dataset.h"

namespace cgcn {

inline constexpr int kStoreVersion = 1;
inline constexpr const char* kStoreFormat = "clustergcn-store";  // what meta.json calls it

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<uint8_t> {
  static constexpr const char* name = "|u1";
};
template <>
struct DTypeOf<char> {
  static constexpr const char* name = "|u1";
};
template <>
struct DTypeOf<Half> {
  static constexpr const char* name = "<f2";
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr const char* name = "<u2";  // NumPy has no such type: the bits
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr const char* name = "<u4";
};
template <>
struct DTypeOf<int32_t> {
  static constexpr const char* name = "<i4";
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr const char* name = "<u8";
};
template <>
struct DTypeOf<int64_t> {
  static constexpr const char* name = "<i8";
};
template <>
struct DTypeOf<float> {
  static constexpr const char* name = "<f4";
};

// One array being written front to back; its shape is known only at the end.
class ArrayWriter {
 public:
  // columns 0: one-dimensional. No file: it is described, and written nowhere.
  ArrayWriter(const fs::path& file, std::string dtype, size_t item_bytes, uint64_t columns);
  ArrayWriter(const ArrayWriter&) = delete;  // its thread knows where it is
  ArrayWriter& operator=(const ArrayWriter&) = delete;
  template <class T>
  void append(std::span<const T> values) {
    CGCN_CHECK(sizeof(T) == item_bytes_);
    append_bytes(values.data(), values.size_bytes());
  }
  void append_bytes(const void* data, size_t bytes);
  // The same on a thread of its own: the values stay as they are until the next append, or finish(), returns.
  template <class T>
  void append_behind(std::span<const T> values) {
    CGCN_CHECK(sizeof(T) == item_bytes_);
    finish_behind();
    behind_ = std::async(std::launch::async, [this, values] { write_bytes(values.data(), values.size_bytes()); });
  }
  // Writes the header; returns dtype, shape and checksum for meta.json.
  nlohmann::json finish(OutputFile::Storing storing = OutputFile::Storing::kNow);

 private:
  void write_bytes(const void* data, size_t bytes);
  void finish_behind() {
    if (behind_.valid()) behind_.get();
  }

  std::optional<OutputFile> file_;
  Hasher hasher_;
  std::string dtype_;
  size_t item_bytes_;
  uint64_t columns_, bytes_ = 0;
  std::future<void> behind_;  // last: waits for the thread before the file goes
};

// Where a store keeps an array.
inline fs::path array_file(const fs::path& store, const std::string& name) { return store / (name + ".npy"); }

// What identifies the features of a store. kOfValues: equal values in any form, sparse or dense, give the same, at the
// price of reading them once more. kOfBytes: for a store that is derived from another, and compared with itself only.
enum class FeatureHash { kOfValues, kOfBytes };

class StoreWriter {
 public:
  StoreWriter();  // writes nothing: for the meta.json that a store of the same arrays would have
  StoreWriter(const fs::path& target, StagedDirectory::Existing existing,
              OutputFile::Storing storing = OutputFile::Storing::kNow);

  // Whole arrays that are in memory (or mapped) already.
  void write_graph(const CsrGraph& graph);
  void write_features(const FeatureMatrix& features);
  void write_labels(const Labels& labels);
  void write_split(std::span<const uint8_t> split);
  void write_graph_ids(std::span<const uint32_t> graph_ids);
  void write_ids(const NodeIds& ids);
  void write_class_names(const std::vector<std::string>& names);
  // Of the feature columns; with what made them of a table, if that was more than reading numbers.
  void write_feature_names(std::vector<std::string> names, std::vector<ColumnEncoding> encoding = {});
  template <class T>
  void write_array(const std::string& name, std::span<const T> values, uint64_t columns = 0) {
    ArrayWriter writer = begin_array<T>(name, columns);
    writer.append(values);
    end_array(name, writer);
  }
  // Arrays that are produced piece by piece, under the names that docs/formats.md gives. For dense features:
  // begin_array<float>("features", columns), append rows, end_array, then declare_features.
  template <class T>
  ArrayWriter begin_array(const std::string& name, uint64_t columns = 0) {
    return {staging_ ? array_file(staging_->path(), name) : fs::path(), DTypeOf<T>::name, sizeof(T), columns};
  }
  void end_array(const std::string& name, ArrayWriter& writer) { arrays_[name] = writer.finish(storing_); }
  void declare_features(FeatureMatrix::Kind kind, uint32_t columns);
  void declare_labels(const Labels& labels);
  void declare_ids(NodeIds::Kind kind);
  void declare_graph(NodeId num_nodes, uint64_t num_entries, uint64_t num_edges, bool directed, bool weighted);
  // Anything else to be kept in meta.json: where the data came from, a partition's options …
  void set_extra(const std::string& key, nlohmann::json value) { extra_[key] = std::move(value); }

  // A data set that is in memory, but for what set_extra() takes and finish().
  void write_dataset(const Dataset& dataset);

  // meta.json, then the rename.
  void finish(const std::string& name, FeatureHash hash = FeatureHash::kOfValues);
  // What meta.json holds; features_hash: as FeatureHash says.
  nlohmann::json finish_meta(const std::string& name, const std::string& features_hash);
  const fs::path& staging() const { return staging_->path(); }
  const fs::path& target() const { return staging_->target(); }

 private:
  std::optional<StagedDirectory> staging_;
  OutputFile::Storing storing_ = OutputFile::Storing::kNow;
  std::map<std::string, nlohmann::json> arrays_;
  FeatureMatrix::Kind feature_kind_ = FeatureMatrix::Kind::kIdentity;
  std::vector<std::string> feature_names_;
  std::vector<ColumnEncoding> encoding_;
  nlohmann::json meta_, extra_ = nlohmann::json::object();
};

// Writes a dataset that is in memory.
void write_store(const fs::path& target, const Dataset& dataset, StagedDirectory::Existing existing,
                 const nlohmann::json& extra = nlohmann::json::object());

// Error unless `path` is a graph store and holds nothing but what this program wrote: whoever replaces it deletes all.
void require_replaceable_store(const fs::path& path);

}  // namespace cgcn
