// Edges in any order: those that a file holds, or a list of those that had to be parsed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/file.h"
#include "graph/csr_graph.h"

namespace cgcn {

// A run of edges: from[i] → to[i], with weights[i] if weights is not null.
struct EdgeRun {
  const NodeId* from;
  const NodeId* to;
  const float* weights;
  size_t size;
};

class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  virtual bool weighted() const = 0;
  // Calls with every edge once, in the same order each time. Ids are below the number of nodes given to build_graph.
  virtual void visit(const std::function<void(const EdgeRun&)>& use) const = 0;
  virtual void release() {}  // the last visit is over: memory may be given back
  virtual void spill() {}    // what is in memory goes to disk, if it has a place there
};

// What a list may take: beyond half of the process's memory, further edges go to a file in the folder; all of them
// if building the graph needs the room.
struct EdgeLimit {
  uint64_t memory = UINT64_MAX;  // for the whole process
  fs::path scratch = {};
};

class EdgeList final : public EdgeSource {
 public:
  explicit EdgeList(bool weighted = false, EdgeLimit limit = {}) : limit_(std::move(limit)), weighted_(weighted) {}
  void add(NodeId from, NodeId to, float weight = 1) {
    if (slot_ == kChunk) [[unlikely]]
      begin_chunk();
    from_[slot_] = from;
    to_[slot_] = to;
    if (weighted_) weights_[slot_] = weight;
    ++slot_;
  }
  uint64_t size() const { return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + slot_; }
  void renumber(const std::function<NodeId(NodeId)>& number);  // of every node, in place

  bool weighted() const override { return weighted_; }
  void visit(const std::function<void(const EdgeRun&)>& use) const override;
  void release() override;
  void spill() override;

 private:
  static constexpr size_t kChunk = size_t{1} << 18;  // edges; a fixed size, so that growing never copies
  struct Chunk;
  void begin_chunk();
  void point_to(Chunk& last);
  size_t used(size_t chunk) const { return chunk + 1 < chunks_.size() ? kChunk : slot_; }

  std::vector<std::shared_ptr<Chunk>> chunks_;
  size_t slot_ = kChunk;  // the next in the last chunk, whose arrays these are
  NodeId *from_ = nullptr, *to_ = nullptr;
  float* weights_ = nullptr;
  EdgeLimit limit_;
  bool weighted_;
};

}  // namespace cgcn
