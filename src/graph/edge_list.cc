#include "graph/edge_list.h"

#include <algorithm>

#include "common/buffer.h"

namespace cgcn {

struct EdgeList::Chunk {
  explicit Chunk(bool weighted) : from(kChunk), to(kChunk), weights(weighted ? kChunk : 0) {}
  Buffer<NodeId> from, to;
  Buffer<float> weights;
};

void EdgeList::begin_chunk() {
  Chunk& chunk = *chunks_.emplace_back(std::make_shared<Chunk>(weighted_));
  from_ = chunk.from.data();
  to_ = chunk.to.data();
  weights_ = chunk.weights.data();
  slot_ = 0;
}

void EdgeList::visit(const std::function<void(const EdgeRun&)>& use) const {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const Chunk& chunk = *chunks_[i];
    use({chunk.from.data(), chunk.to.data(), weighted_ ? chunk.weights.data() : nullptr, used(i)});
  }
}

void EdgeList::renumber(const std::function<NodeId(NodeId)>& number) {
  for (size_t i = 0; i < chunks_.size(); ++i)
    for (Buffer<NodeId>* ends : {&chunks_[i]->from, &chunks_[i]->to})
      std::transform(ends->begin(), ends->begin() + used(i), ends->begin(), number);
}

void EdgeList::release() {
  chunks_.clear();
  slot_ = kChunk;
}

}  // namespace cgcn
