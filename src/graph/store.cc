#include "graph/store.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/json.h"
#include "common/threads.h"
#include "graph/feature_hash.h"
#include "graph/npy.h"
#include "graph/store_meta.h"

namespace cgcn {
namespace {

using nlohmann::json;

constexpr size_t kVerifyChunk = size_t{8} << 20;

const char* kind_name(FeatureMatrix::Kind kind) {
  switch (kind) {
    case FeatureMatrix::Kind::kDense32:
      return "dense32";
    case FeatureMatrix::Kind::kDense16:
      return "dense16";
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
    case FeatureMatrix::Kind::kSparse:
      return FeatureMatrix::sparse(map_written<EdgeOffset>(folder, "features_offsets"),
                                   map_written<uint32_t>(folder, "features_columns"),
                                   map_written<float>(folder, "features_values"), columns);
    default:
      return FeatureMatrix::identity(rows);
  }
}

std::string meta_checksum(json meta) {
  meta.erase("checksum");
  const std::string text = meta.dump();
  return hex64(checksum(text.data(), text.size()));
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
void StoreWriter::declare_labels(bool multi_label, uint32_t num_classes) {
  meta_["labels"] = {{"kind", multi_label ? "multi" : "single"}, {"classes", num_classes}};
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
  else
    write_array("labels", labels.classes());
  declare_labels(labels.multi_label(), labels.num_classes());
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

Store::Store(Dataset data, const fs::path& folder) : path_(folder) {
  StoreWriter writer;
  writer.write_dataset(data);
  meta_ = writer.finish_meta(data.name, hash_features(data.features));
  data.graph_hash = meta_.at("graph_hash");
  data.content_hash = meta_.at("content_hash");
  in_memory_ = std::move(data);
}

Store::Store(const fs::path& path, Verify verify) : path_(path) {
  std::error_code error;
  if (!fs::exists(path, error))
    throw Error("no such graph store", path.string(),
                "make one with 'clustergcn import SOURCE STORE' or 'clustergcn generate STORE'");
  if (!fs::is_regular_file(path / "meta.json", error))
    throw Error("is not a graph store (it has no meta.json)", path.string(),
                "bring your data in with 'clustergcn import SOURCE STORE'");
  const std::string text = read_text_file(path / "meta.json", size_t{256} << 20);
  meta_ = parse_json(text);
  const fs::path meta_path = path / "meta.json";
  if (!meta_.is_object() || !meta_.contains("format") || meta_["format"] != json(kStoreFormat))
    throw damaged_store(meta_path, "meta.json is not a store's");
  if (!meta_.contains("version") || meta_["version"] != kStoreVersion)
    throw Error(fmt::format("has format version {}; this program reads {}",
                            meta_.contains("version") ? meta_["version"].dump() : "none", kStoreVersion),
                path.string(), "import it again with this program");
  if (!meta_.contains("checksum") || !meta_["checksum"].is_string() || meta_["checksum"] != meta_checksum(meta_))
    throw damaged_store(meta_path, "meta.json was altered");
  check_meta(meta_, meta_path);
  try {
    if (verify == Verify::kFull) {
      verify_checksums();
      verify_structure();
    }
    for (const auto& [name, array] : meta_.at("arrays").items()) map_array(name, array.at("dtype"), nullptr);
  } catch (const json::exception& problem) {
    throw damaged_store(meta_path, problem.what());
  }
}

std::pair<std::span<const std::byte>, std::shared_ptr<const MappedFile>> Store::map_array(const std::string& name,
                                                                                          const std::string& dtype,
                                                                                          uint64_t* columns) const {
  const fs::path file = array_file(path_, name);
  const json& arrays = meta_.at("arrays");
  if (!arrays.contains(name)) throw damaged_store(path_, fmt::format("meta.json does not list the array '{}'", name));
  const json& recorded = arrays.at(name);
  auto& mapped = mapped_[name];
  if (mapped == nullptr) {
    std::error_code error;
    if (!fs::exists(file, error)) throw damaged_store(file, "the file is missing");
    mapped = std::make_shared<MappedFile>(file);
  }
  const NpyHeader header = parse_npy_header(mapped->bytes(), file.string());
  const std::string expected = make_npy_header(dtype, header.shape);
  if (json(dtype) != recorded.at("dtype") || json(header.shape) != recorded.at("shape") ||
      std::memcmp(expected.data(), mapped->bytes().data(), kNpyHeaderBytes) != 0)
    throw damaged_store(file, "its type or shape is not the recorded one");
  if (columns != nullptr) *columns = header.shape.size() == 2 ? header.shape[1] : 0;
  return {mapped->bytes().subspan(header.data_offset), mapped};
}

void Store::verify_checksums() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : meta_.at("arrays").items()) {
    map_array(name, array.at("dtype"), nullptr);
    names.push_back(name);
  }
  parallel_blocks(names.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const MappedFile& file = *mapped_.at(names[i]);
      const auto bytes = file.bytes().subspan(kNpyHeaderBytes);
      Hasher hasher;
      for (size_t at = 0; at < bytes.size(); at += kVerifyChunk) {
        const size_t size = std::min(kVerifyChunk, bytes.size() - at);
        hasher.add(bytes.data() + at, size);
        file.release(kNpyHeaderBytes + at, size);
      }
      if (json(hex64(hasher.digest64())) != meta_.at("arrays").at(names[i]).at("checksum"))
        throw damaged_store(file.path(), "its bytes do not match the recorded checksum");
    }
  });
}

// What the rest of the program relies on without looking again. Checksums catch accidents; this catches a store that
// was put together wrongly.
void Store::verify_structure() const {
  const auto n = meta_.at("nodes").get<uint64_t>();
  const auto check = [&](bool fine, const std::string& name, const char* what) {
    if (!fine) throw damaged_store(path_ / (name + ".npy"), what);
  };
  const auto check_rows = [&](const std::string& prefix, const std::string& columns_name, uint64_t rows,
                              uint64_t limit) {
    const auto offsets = array<uint64_t>(prefix + "_offsets");
    const auto targets = array<uint32_t>(columns_name);
    check(offsets.size() == rows + 1 && offsets[0] == 0 && offsets[rows] == targets.size(), prefix + "_offsets",
          "its ends do not fit the arrays beside it");
    check(std::is_sorted(offsets.begin(), offsets.end()), prefix + "_offsets", "it is not ascending");
    std::atomic<bool> fine{true};
    parallel_blocks(rows, 65536, [&](size_t begin, size_t end) {
      for (size_t v = begin; v < end; ++v)
        for (uint64_t e = offsets[v]; e < offsets[v + 1]; ++e)
          if (targets[e] >= limit || (e > offsets[v] && targets[e] <= targets[e - 1])) fine = false;
      targets.release(offsets[begin], offsets[end]);
    });
    check(fine, columns_name, "an index is out of range or out of order");
  };
  if (n >= kNoNode) throw damaged_store(path_ / "meta.json", "too many nodes");
  check_rows("adjacency", "adjacency_targets", n, n);
  const auto entries = array<NodeId>("adjacency_targets").size();
  if (has_array("adjacency_weights"))
    check(array<float>("adjacency_weights").size() == entries, "adjacency_weights", "it is not as long as the targets");
  const json& features = meta_.at("features");
  const auto columns = features.at("columns").get<uint64_t>();
  const std::string kind = features.at("kind");
  if (columns >= UINT32_MAX) throw damaged_store(path_ / "meta.json", "too many feature columns");
  if (kind == "sparse") {
    check_rows("features", "features_columns", n, columns);
    check(array<float>("features_values").size() == array<uint32_t>("features_columns").size(), "features_values",
          "it is not as long as the columns");
  } else if (kind == "dense32" || kind == "dense16") {
    uint64_t width = 0;
    const size_t size =
        kind == "dense32" ? array<float>("features", &width).size() : array<Half>("features", &width).size();
    check(width == columns && columns > 0 && size == n * columns, "features", "its shape does not fit the graph");
  }
  const auto encoding = features.value("encoding", std::vector<ColumnEncoding>());
  const auto names = features.value("names", std::vector<std::string>());
  if ((!names.empty() && names.size() != columns) || (!encoding.empty() && feature_names(encoding) != names))
    throw damaged_store(path_ / "meta.json", "the names of the feature columns do not fit the features");
  const json& labels = meta_.at("labels");
  const auto classes = labels.at("classes").get<uint64_t>();
  if (classes >= UINT32_MAX) throw damaged_store(path_ / "meta.json", "too many classes");
  if (labels.at("kind") == "single") {
    const auto values = array<int32_t>("labels");
    check(values.size() == n, "labels", "its length is not the number of nodes");
    check(classes > 0 && std::all_of(values.begin(), values.end(),
                                     [&](int32_t c) { return c >= -1 && c < static_cast<int64_t>(classes); }),
          "labels", "a class is out of range");
  } else if (labels.at("kind") == "multi") {
    check(classes > 0 && array<uint8_t>("labels").size() == n * Labels::row_bytes(static_cast<uint32_t>(classes)),
          "labels", "its size does not fit nodes and classes");
  }
  if (has_array("split")) {
    const auto split = array<uint8_t>("split");
    check(split.size() == n, "split", "its length is not the number of nodes");
    check(std::all_of(split.begin(), split.end(),
                      [](uint8_t role) { return role < 3 || role == static_cast<uint8_t>(Role::kNone); }),
          "split", "a value is neither 0, 1, 2 nor 255");
  }
  if (has_array("graph_ids"))
    check(array<uint32_t>("graph_ids").size() == n, "graph_ids", "its length is not the number of nodes");
  if (meta_.at("ids") == "integers")
    check(array<int64_t>("node_ids").size() == n, "node_ids", "its length is not the number of nodes");
  if (meta_.at("ids") == "strings") {
    const auto offsets = array<uint64_t>("node_ids_offsets");
    check(offsets.size() == n + 1 && offsets[0] == 0 && std::is_sorted(offsets.begin(), offsets.end()) &&
              offsets[n] == array<char>("node_ids_text").size(),
          "node_ids_offsets", "it does not fit the text beside it");
  }
}

Dataset Store::dataset() const {
  if (in_memory_) return *in_memory_;
  Dataset dataset;
  dataset.path = path_;
  dataset.name = meta_.at("name");
  SharedArray<float> weights;
  if (has_array("adjacency_weights")) weights = array<float>("adjacency_weights");
  dataset.graph = CsrGraph(array<EdgeOffset>("adjacency_offsets"), array<NodeId>("adjacency_targets"), weights,
                           meta_.at("directed"));
  const std::string kind = meta_.at("features").at("kind");
  const auto columns = meta_.at("features").at("columns").get<uint32_t>();
  if (kind == "dense32")
    dataset.features = FeatureMatrix::dense(array<float>("features"), columns);
  else if (kind == "dense16")
    dataset.features = FeatureMatrix::dense16(array<Half>("features"), columns);
  else if (kind == "sparse")
    dataset.features = FeatureMatrix::sparse(array<EdgeOffset>("features_offsets"), array<uint32_t>("features_columns"),
                                             array<float>("features_values"), columns);
  else
    dataset.features = FeatureMatrix::identity(dataset.graph.num_nodes());
  const auto classes = meta_.at("labels").at("classes").get<uint32_t>();
  if (meta_.at("labels").at("kind") == "single")
    dataset.labels = Labels::single(array<int32_t>("labels"), classes);
  else if (meta_.at("labels").at("kind") == "multi")
    dataset.labels = Labels::multi(array<uint8_t>("labels"), classes);
  if (has_array("split")) dataset.split = array<uint8_t>("split");
  if (has_array("graph_ids")) dataset.graph_ids = array<uint32_t>("graph_ids");
  if (meta_.at("ids") == "integers") dataset.ids = NodeIds::integers(array<int64_t>("node_ids"));
  if (meta_.at("ids") == "strings")
    dataset.ids = NodeIds::strings(array<uint64_t>("node_ids_offsets"), array<char>("node_ids_text"));
  dataset.class_names = meta_.at("class_names").get<std::vector<std::string>>();
  dataset.feature_names = meta_.at("features").value("names", std::vector<std::string>());
  dataset.encoding = meta_.at("features").value("encoding", std::vector<ColumnEncoding>());
  dataset.graph_hash = meta_.at("graph_hash");
  dataset.content_hash = meta_.at("content_hash");
  return dataset;
}

void Store::release_pages() const {
  for (const auto& [name, file] : mapped_) file->release(0, file->bytes().size());
}

uint64_t Store::bytes_on_disk() const {
  uint64_t total = 0;
  if (in_memory_) return in_memory_->graph.stored_bytes() + in_memory_->features.stored_bytes();
  std::error_code error;
  for (const auto& [name, array] : meta_.at("arrays").items()) total += fs::file_size(path_ / (name + ".npy"), error);
  return total;
}

}  // namespace cgcn
