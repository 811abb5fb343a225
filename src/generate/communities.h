// Communities inside communities. Nodes get a place; a community is a range of places, cut into smaller ones level by
// level.
//
// Places are not node ids: ids are shuffled within each graph (order), so that nothing can be read from them.
#pragma once

#include <vector>

#include "common/buffer.h"
#include "generate/shape.h"

namespace cgcn {

struct Community {
  NodeId begin, end;  // places
  uint32_t parent;    // in the level above; at level 0, its own number
};

class Communities {
 public:
  Communities(const Shape& shape, uint64_t seed);

  // Level 0 holds the separate graphs, the last level the smallest communities. Each level covers all places, in order.
  const std::vector<std::vector<Community>>& levels() const { return levels_; }
  size_t num_levels() const { return levels_.size(); }
  const std::vector<Community>& leaves() const { return levels_.back(); }
  uint32_t leaf_of(NodeId place) const { return leaf_of_[place]; }
  NodeId node_at(NodeId place) const { return order_[place]; }
  NodeId place_of(NodeId node) const { return place_[node]; }
  NodeId num_nodes() const { return static_cast<NodeId>(order_.size()); }

 private:
  std::vector<std::vector<Community>> levels_;
  Buffer<uint32_t> leaf_of_;
  Buffer<NodeId> order_, place_;
};

}  // namespace cgcn
