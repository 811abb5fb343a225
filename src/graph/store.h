// The graph store: a directory of .npy arrays and meta.json, memory-mapped, never parsed (docs/formats.md).
//
// It is written next to its place and renamed, so that it is there whole or not at all. Opening checks every array
// against its recorded shape and checksum and the graph's structure against itself, so that no later code meets a bad
// index.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/file.h"
#include "graph/dataset.h"
#include "graph/store_writer.h"

namespace cgcn {

enum class Verify { kFull, kShapesOnly };  // kShapesOnly: for a store that this process has verified already

class Store {
 public:
  explicit Store(const fs::path& path, Verify verify = Verify::kFull);
  // A data set that is in memory, as if it had been written and opened. What is derived from it goes to the folder.
  Store(Dataset data, const fs::path& folder);

  const fs::path& path() const { return path_; }
  const nlohmann::json& meta() const { return meta_; }
  const nlohmann::json& extra() const { return meta_.at("extra"); }
  Dataset dataset() const;  // views into the mapped files, which stay mapped as long as any view lives
  bool has_array(const std::string& name) const { return meta_.at("arrays").contains(name); }
  // A mapped array by name; its dtype must be T's. columns receives the second extent (0 if one-dimensional).
  template <class T>
  SharedArray<T> array(const std::string& name, uint64_t* columns = nullptr) const {
    auto [view, owner] = map_array(name, DTypeOf<T>::name, columns);
    return {{reinterpret_cast<const T*>(view.data()), view.size() / sizeof(T)}, std::move(owner)};
  }
  // Where something that is derived from it is to be made, such as partitions/NAME: in its folder, or if that cannot be
  // written to in the user's cache. And where it lies, if its folder has it.
  fs::path place_for(const fs::path& name) const;
  fs::path derived(const fs::path& name) const;
  uint64_t bytes_on_disk() const;
  // Gives back the memory of the mapped pages (they are read again when needed), so that a pass over all stays small.
  void release_pages() const;

 private:
  std::pair<std::span<const std::byte>, std::shared_ptr<const MappedFile>> map_array(const std::string& name,
                                                                                     const std::string& dtype,
                                                                                     uint64_t* columns) const;
  void verify_checksums() const;
  void verify_structure() const;

  fs::path path_;
  nlohmann::json meta_;
  std::optional<Dataset> in_memory_;
  mutable std::map<std::string, std::shared_ptr<MappedFile>> mapped_;
};

inline Dataset open_dataset(const fs::path& path) { return Store(path).dataset(); }

}  // namespace cgcn
