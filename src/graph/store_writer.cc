#include "graph/store_writer.h"

#include "common/json.h"
#include "graph/feature_hash.h"
#include "graph/npy.h"
#include "graph/store_meta.h"

namespace cgcn {
namespace {

using nlohmann::json;

const char* kind_name(FeatureMatrix::Kind kind) {
  switch (kind) {
    case FeatureMatrix::Kind::kDense32:
      return "dense32";
    case FeatureMatrix::Kind::kDense16:
      return "dense16";
    case FeatureMatrix::Kind::kDenseBFloat16:
      return "bfloat16";
    case FeatureMatrix::Kind::kSparse:
      return "sparse";
    default:
      return "identity";
  }
}

// The hash of arrays by name, dtype, shape and checksum. Which arrays count is what tells the two hashes apart.
template <class Counts>
std::string hash_arrays(const json& meta, Counts&& counts) {
  Hasher hasher;
  hasher.add_value<uint32_t>(kStoreVersion).add_value<uint64_t>(meta.at("nodes").get<uint64_t>());
  hasher.add_value<uint8_t>(meta.at("directed").get<bool>() ? 1 : 0);
  for (const auto& [name, array] : meta.at("arrays").items())
    if (counts(name)) hasher.add(name).add(array.dump());
  return hasher.digest128_hex();
}

bool is_adjacency(const std::string& name) { return name.starts_with("adjacency_"); }
bool is_feature(const std::string& name) { return name.starts_with("features"); }
bool is_content(const std::string& name) {
  for (const char* prefix : {"adjacency_", "labels", "split", "graph_ids"})  // features: by what they hold, not how
    if (name.starts_with(prefix)) return true;
  return false;
}

template <class T>
SharedArray<T> map_written(const fs::path& folder, const char* name) {
  auto file = std::make_shared<const MappedFile>(array_file(folder, name));
  const auto bytes = file->bytes().subspan(kNpyHeaderBytes);
  return {{reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)}, std::move(file)};
}

// The feature arrays of a store that is being written.
FeatureMatrix staged_features(const fs::path& folder, FeatureMatrix::Kind kind, NodeId rows, uint32_t columns) {
  switch (kind) {
    case FeatureMatrix::Kind::kDense32:
      return FeatureMatrix::dense(map_written<float>(folder, "features"), columns);
    case FeatureMatrix::Kind::kDense16:
      return FeatureMatrix::dense16(map_written<Half>(folder, "features"), columns);
    case FeatureMatrix::Kind::kDenseBFloat16:
      return FeatureMatrix::dense_bfloat16(map_written<BFloat16>(folder, "features"), columns);
    case FeatureMatrix::Kind::kSparse:
      return FeatureMatrix::sparse(map_written<EdgeOffset>(folder, "features_offsets"),
                                   map_written<uint32_t>(folder, "features_columns"),
                                   map_written<float>(folder, "features_values"), columns);
    default:
      return FeatureMatrix::identity(rows);
  }
}

}  // namespace

ArrayWriter::ArrayWriter(const fs::path& file, std::string dtype, size_t item_bytes, uint64_t columns)
    : dtype_(std::move(dtype)), item_bytes_(item_bytes), columns_(columns) {
  if (file.empty()) return;
  file_.emplace(file);
  file_->write(std::string(kNpyHeaderBytes, ' '));
}

void ArrayWriter::append_bytes(const void* data, size_t bytes) {
  finish_behind();
  write_bytes(data, bytes);
}

void ArrayWriter::write_bytes(const void* data, size_t bytes) {
  if (file_) file_->write(data, bytes);
  hasher_.add(data, bytes);
  bytes_ += bytes;
}

json ArrayWriter::finish(OutputFile::Storing storing) {
  finish_behind();
  std::vector<uint64_t> shape{bytes_ / item_bytes_};
  if (columns_ > 0) {
    CGCN_CHECK(bytes_ % (item_bytes_ * columns_) == 0);
    shape = {bytes_ / item_bytes_ / columns_, columns_};
  }
  if (file_) {
    const std::string header = make_npy_header(dtype_, shape);
    file_->write_at(0, header.data(), header.size());
    file_->commit(storing);
  }
  return {{"dtype", dtype_}, {"shape", shape}, {"checksum", hex64(hasher_.digest64())}};
}

StoreWriter::StoreWriter()
    : meta_{{"format", kStoreFormat},
            {"version", kStoreVersion},
            {"features", {{"kind", "identity"}, {"columns", 0}}},
            {"labels", {{"kind", "none"}, {"classes", 0}}},
            {"class_names", json::array()},
            {"ids", "range"}} {}

StoreWriter::StoreWriter(const fs::path& target, StagedDirectory::Existing existing, OutputFile::Storing storing)
    : StoreWriter() {
  staging_.emplace(target, existing, require_replaceable_store);
  storing_ = storing;
}

void StoreWriter::declare_graph(NodeId num_nodes, uint64_t num_entries, uint64_t num_edges, bool directed,
                                bool weighted) {
  meta_["nodes"] = num_nodes;
  meta_["entries"] = num_entries;
  meta_["edges"] = num_edges;
  meta_["directed"] = directed;
  meta_["weighted"] = weighted;
}
void StoreWriter::declare_features(FeatureMatrix::Kind kind, uint32_t columns) {
  feature_kind_ = kind;
  meta_["features"] = {{"kind", kind_name(kind)}, {"columns", columns}};
}
void StoreWriter::declare_labels(const Labels& labels) {
  const char* kind = labels.multi_label() ? "multi" : labels.regression() ? "numbers" : "single";
  meta_["labels"] = {{"kind", kind}, {"classes", labels.num_classes()}};
}

void StoreWriter::declare_ids(NodeIds::Kind kind) {
  meta_["ids"] = kind == NodeIds::Kind::kStrings ? "strings" : kind == NodeIds::Kind::kIntegers ? "integers" : "range";
}

void StoreWriter::write_graph(const CsrGraph& graph) {
  write_array("adjacency_offsets", graph.offsets());
  write_array("adjacency_targets", graph.targets());
  if (graph.weighted()) write_array("adjacency_weights", graph.weights());
  declare_graph(graph.num_nodes(), graph.num_entries(), graph.num_edges(), graph.directed(), graph.weighted());
}

void StoreWriter::write_features(const FeatureMatrix& features) {
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      write_array("features", features.dense32(), features.columns());
      break;
    case FeatureMatrix::Kind::kDense16:
      write_array("features", features.dense16(), features.columns());
      break;
    case FeatureMatrix::Kind::kDenseBFloat16:
      write_array("features", features.dense_bfloat16(), features.columns());
      break;
    case FeatureMatrix::Kind::kSparse:
      write_array("features_offsets", features.sparse_offsets());
      write_array("features_columns", features.sparse_columns());
      write_array("features_values", features.sparse_values());
      break;
    case FeatureMatrix::Kind::kIdentity:
      break;
  }
  declare_features(features.kind(), features.columns());
}

void StoreWriter::write_labels(const Labels& labels) {
  if (!labels.present()) return;
  if (labels.multi_label())
    write_array("labels", labels.bits(), Labels::row_bytes(labels.num_classes()));
  else if (labels.regression())
    write_array("labels", labels.values());
  else
    write_array("labels", labels.classes());
  declare_labels(labels);
}

void StoreWriter::write_split(std::span<const uint8_t> split) {
  if (!split.empty()) write_array("split", split);
}
void StoreWriter::write_graph_ids(std::span<const uint32_t> graph_ids) {
  if (!graph_ids.empty()) write_array("graph_ids", graph_ids);
}
void StoreWriter::write_ids(const NodeIds& ids) {
  if (ids.kind() == NodeIds::Kind::kIntegers) {
    write_array("node_ids", ids.integer_ids());
  } else if (ids.kind() == NodeIds::Kind::kStrings) {
    write_array("node_ids_offsets", ids.string_offsets());
    write_array("node_ids_text", ids.string_text());
  }
  declare_ids(ids.kind());
}
void StoreWriter::write_class_names(const std::vector<std::string>& names) { meta_["class_names"] = names; }
void StoreWriter::write_feature_names(std::vector<std::string> names, std::vector<ColumnEncoding> encoding) {
  feature_names_ = std::move(names);
  encoding_ = std::move(encoding);
}

json StoreWriter::finish_meta(const std::string& name, const std::string& features_hash) {
  CGCN_CHECK(meta_.contains("nodes"), "a store without a graph");
  meta_["name"] = name;
  meta_["arrays"] = arrays_;
  meta_["extra"] = extra_;
  if (!feature_names_.empty()) meta_["features"]["names"] = feature_names_;
  if (!encoding_.empty()) meta_["features"]["encoding"] = encoding_;
  // Names may come from files in any encoding: what is not UTF-8 is replaced, so that meta.json can be read.
  meta_ = json::parse(meta_.dump(-1, ' ', false, json::error_handler_t::replace));
  meta_["graph_hash"] = hash_arrays(meta_, is_adjacency);
  meta_["features"]["hash"] = features_hash.empty() ? hash_arrays(meta_, is_feature) : features_hash;
  meta_["content_hash"] =
      Hasher().add(hash_arrays(meta_, is_content)).add(meta_["features"]["hash"].get<std::string>()).digest128_hex();
  meta_["checksum"] = meta_checksum(meta_);
  return meta_;
}

void StoreWriter::finish(const std::string& name, FeatureHash hash) {
  std::string features_hash;
  if (hash == FeatureHash::kOfValues) {
    CGCN_CHECK(meta_.contains("nodes"), "a store without a graph");
    features_hash =
        hash_features(staged_features(staging_->path(), feature_kind_, meta_["nodes"], meta_["features"]["columns"]));
  }
  OutputFile file(staging_->path() / "meta.json");
  file.write(finish_meta(name, features_hash).dump(2) + "\n");
  file.commit();
  staging_->commit();
}

void StoreWriter::write_dataset(const Dataset& dataset) {
  write_graph(dataset.graph);
  write_features(dataset.features);
  write_labels(dataset.labels);
  write_split(dataset.split);
  write_graph_ids(dataset.graph_ids);
  write_ids(dataset.ids);
  write_class_names(dataset.class_names);
  write_feature_names(dataset.feature_names, dataset.encoding);
}

void write_store(const fs::path& target, const Dataset& dataset, StagedDirectory::Existing existing,
                 const json& extra) {
  StoreWriter writer(target, existing);
  writer.write_dataset(dataset);
  for (const auto& [key, value] : extra.items()) writer.set_extra(key, value);
  writer.finish(dataset.name);
}

}  // namespace cgcn
