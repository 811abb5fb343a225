// What may be deleted to make place for a store: a store that this program wrote, and nothing that lies next to it.
#include <algorithm>
#include <array>

#include "common/json.h"
#include "graph/store.h"

namespace cgcn {
namespace {

using nlohmann::json;

constexpr const char* kFoldersOfStores[] = {"partitions", "cache", "aggregated"};

// An array of any store, by name; for one whose meta.json can no longer be read.
bool is_known_array(const std::string& name) {
  constexpr std::array kPrefixes = {"adjacency_", "features", "labels", "split",
                                    "graph_ids",  "node_ids", "order",  "cluster_offsets"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](const char* prefix) { return name.starts_with(prefix); });
}

// What is not a store's: the first that is found, or the folder itself if it is no store at all.
fs::path find_foreign(const fs::path& folder) {
  std::error_code error;
  const fs::path meta_file = folder / "meta.json";
  if (!fs::is_directory(folder, error) || !fs::is_regular_file(meta_file, error)) return folder;
  const std::string text = read_text_file(meta_file);
  const json meta = parse_json(text);
  const bool readable = meta.is_object() && meta.contains("arrays") && meta["arrays"].is_object();
  if (readable ? meta.value("format", json()) != json(kStoreFormat) : text.find(kStoreFormat) == std::string::npos)
    return folder;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const std::string name = path.filename().string();
    if (name == "meta.json" || is_temporary_name(name)) continue;
    if (path.extension() == ".npy" && entry.is_regular_file(error)) {
      const std::string array = path.stem().string();
      if (readable ? meta["arrays"].contains(array) : is_known_array(array)) continue;
    }
    if (!entry.is_directory(error) ||
        std::find(std::begin(kFoldersOfStores), std::end(kFoldersOfStores), name) == std::end(kFoldersOfStores))
      return path;
    for (const auto& inner : fs::directory_iterator(path))
      if (!is_temporary_name(inner.path().filename().string()))
        if (const fs::path foreign = find_foreign(inner.path()); !foreign.empty()) return foreign;
  }
  return {};
}

}  // namespace

void require_replaceable_store(const fs::path& path) {
  const fs::path foreign = [&] {
    try {
      return find_foreign(path);
    } catch (const fs::filesystem_error&) {  // a folder that cannot be read
      return path;
    }
  }();
  if (foreign == path)
    throw Error("is not a graph store, and --force replaces nothing else", path.string(),
                "another name, or delete it yourself");
  if (!foreign.empty())
    throw Error("is not part of the graph store that --force would delete", foreign.string(),
                "another name for the store, or move this file away first");
}

}  // namespace cgcn
