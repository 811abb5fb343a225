#include "graph/edge_list.h"

#include <algorithm>

#include "common/buffer.h"
#include "common/error.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/scratch.h"

namespace cgcn {

struct EdgeList::Chunk {
  Chunk(bool weighted, const fs::path& folder) : bytes(kChunk * (weighted ? 12 : 8)) {
    if (folder.empty())
      memory = Buffer<std::byte>(bytes);
    else
      scratch = make_scratch(folder, bytes);
  }
  NodeId* from() { return reinterpret_cast<NodeId*>(scratch ? scratch.get() : memory.data()); }
  NodeId* to() { return from() + kChunk; }
  float* weights() { return reinterpret_cast<float*>(from() + 2 * kChunk); }
  void release() {
    if (scratch) release_scratch(scratch.get(), bytes);
  }

  uint64_t bytes;
  Buffer<std::byte> memory;
  std::shared_ptr<std::byte> scratch;  // instead, if memory is short
};

void EdgeList::begin_chunk() {
  if (!chunks_.empty()) chunks_.back()->release();
  // Half of the budget for the nodes, and for building the graph.
  const bool spills = limit_.memory != UINT64_MAX && memory_left(limit_.memory) < limit_.memory / 2;
  if (const uint64_t taken = memory_figures().rss; spills && size() > 0 && taken > limit_.memory)
    throw Error(fmt::format("is too little for the nodes of the first {} edges", size()), "--memory",
                fmt::format("more than {}, which they take already", format_bytes(taken)));
  point_to(*chunks_.emplace_back(std::make_shared<Chunk>(weighted_, spills ? limit_.scratch : fs::path())));
  slot_ = 0;
}

void EdgeList::point_to(Chunk& last) {
  from_ = last.from();
  to_ = last.to();
  weights_ = weighted_ ? last.weights() : nullptr;
}

void EdgeList::spill() {
  if (limit_.scratch.empty() || chunks_.empty()) return;
  for (std::shared_ptr<Chunk>& chunk : chunks_) {
    if (chunk->scratch) continue;
    const auto spilt = std::make_shared<Chunk>(weighted_, limit_.scratch);
    std::copy_n(chunk->memory.data(), chunk->bytes, spilt->scratch.get());
    spilt->release();
    chunk = spilt;
  }
  point_to(*chunks_.back());
}

void EdgeList::visit(const std::function<void(const EdgeRun&)>& use) const {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = *chunks_[i];
    use({chunk.from(), chunk.to(), weighted_ ? chunk.weights() : nullptr, used(i)});
    chunk.release();
  }
}

void EdgeList::renumber(const std::function<NodeId(NodeId)>& number) {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    for (NodeId* ends : {chunks_[i]->from(), chunks_[i]->to()}) std::transform(ends, ends + used(i), ends, number);
    chunks_[i]->release();
  }
}

void EdgeList::release() {
  chunks_.clear();
  slot_ = kChunk;
}

}  // namespace cgcn
