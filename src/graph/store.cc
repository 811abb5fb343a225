#include "graph/store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "common/json.h"
#include "common/threads.h"
#include "graph/feature_hash.h"
#include "graph/npy.h"
#include "graph/row_blocks.h"
#include "graph/store_meta.h"

namespace cgcn {
namespace {

using nlohmann::json;

constexpr size_t kVerifyChunk = size_t{8} << 20;

}  // namespace

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
          "its ends do not fit the other arrays");
    check(std::is_sorted(offsets.begin(), offsets.end()), prefix + "_offsets", "it is not ascending");
    std::atomic<bool> fine{true};
    const RowBlocks blocks(offsets);
    parallel_for_each_block(blocks.count(), BlockOrder::kAscending, [&](size_t i) {
      const size_t begin = blocks.begin(i), end = blocks.end(i);
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
  } else if (kind != "identity") {
    uint64_t width = 0;
    const size_t size = kind == "dense32"   ? array<float>("features", &width).size()
                        : kind == "dense16" ? array<Half>("features", &width).size()
                                            : array<BFloat16>("features", &width).size();
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
  } else if (labels.at("kind") == "numbers") {
    const auto values = array<float>("labels");
    check(classes == 1 && values.size() == n, "labels", "its length is not the number of nodes");
    check(std::none_of(values.begin(), values.end(), [](float value) { return std::isinf(value); }), "labels",
          "a number is infinite");
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
          "node_ids_offsets", "it does not fit the text");
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
  else if (kind == "bfloat16")
    dataset.features = FeatureMatrix::dense_bfloat16(array<BFloat16>("features"), columns);
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
  else if (meta_.at("labels").at("kind") == "numbers")
    dataset.labels = Labels::numbers(array<float>("labels"));
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

fs::path Store::derived(const fs::path& name) const {
  std::error_code ignored;
  return fs::exists(path_ / name, ignored) ? path_ / name : place_for(name);
}

// The checksum is of all that it holds, names of nodes and the kind of the features among it.
fs::path Store::place_for(const fs::path& name) const {
  if (can_be_made(path_ / name)) return path_ / name;
  const std::optional<fs::path> cache = cache_folder();
  if (!cache) return path_ / name;
  return *cache / (meta_.at("content_hash").get<std::string>() + "-" + meta_.at("checksum").get<std::string>()) / name;
}

uint64_t Store::bytes_on_disk() const {
  uint64_t total = 0;
  if (in_memory_) return in_memory_->graph.stored_bytes() + in_memory_->features.stored_bytes();
  std::error_code error;
  for (const auto& [name, array] : meta_.at("arrays").items()) total += fs::file_size(path_ / (name + ".npy"), error);
  return total;
}

}  // namespace cgcn
