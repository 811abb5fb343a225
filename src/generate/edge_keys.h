// The edges drawn so far, sorted, each once. They are kept in buckets by their smaller node: in memory, or in files
// without a name if they do not fit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/file.h"
#include "graph/edge_list.h"

namespace cgcn {

using EdgeKey = uint64_t;  // the smaller node id in the high half, the larger in the low

inline EdgeKey key_of(NodeId a, NodeId b) { return uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

// Where edges may be kept.
struct EdgeRoom {
  uint64_t memory = UINT64_MAX;  // for the edges
  fs::path scratch = {};         // a folder for those beyond it
};

class EdgeKeys final : public EdgeSource {
 public:
  // About `expected` edges of n nodes.
  EdgeKeys(NodeId n, uint64_t expected, const EdgeRoom& room);

  void add(std::span<const EdgeKey> keys);  // in any order, duplicates among them
  void settle();                            // sorts them, each once
  uint64_t size() const;                    // once settled
  bool on_disk() const { return !scratch_.empty(); }
  // In order. `keep` may be asked for every key once: those that it refuses are dropped.
  void filter(const std::function<bool(uint64_t index)>& keep);
  std::vector<EdgeKey> take_all();

  bool weighted() const override { return false; }
  void visit(const std::function<void(const EdgeRun&)>& use) const override;
  void release() override { buckets_.clear(); }

 private:
  static constexpr size_t kChunk = size_t{1} << 16;  // keys in a file at a time
  struct Bucket {
    std::vector<EdgeKey> keys;                       // in memory …
    std::vector<std::shared_ptr<std::byte>> chunks;  // … or on disk, all but the last full
    size_t used = 0;                                 // of the last
    uint64_t size() const { return chunks.empty() ? keys.size() : (chunks.size() - 1) * kChunk + used; }
  };
  static EdgeKey* keys_of(const std::shared_ptr<std::byte>& chunk) { return reinterpret_cast<EdgeKey*>(chunk.get()); }
  void push(Bucket& bucket, EdgeKey key);
  static std::vector<EdgeKey> read(const Bucket& bucket);
  void write(Bucket& bucket, std::vector<EdgeKey> keys);
  // Each bucket as it becomes, on all threads.
  void change(const std::function<void(size_t bucket, std::vector<EdgeKey>&)>& work);

  uint64_t width_;  // nodes in a bucket
  fs::path scratch_;
  std::vector<Bucket> buckets_;
};

}  // namespace cgcn
