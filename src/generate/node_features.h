// Features: what a node's communities and class have in common, and noise of its own.
#pragma once

#include <functional>

#include "generate/communities.h"

namespace cgcn {

class NodeFeatures {
 public:
  // classes: of each node, or empty where labels do not decide the features.
  NodeFeatures(const Shape& shape, const Communities& communities, uint32_t columns, std::span<const int32_t> classes,
               uint64_t seed);

  uint32_t columns() const { return columns_; }
  void row(NodeId node, std::span<float> out) const;

 private:
  const Communities& communities_;
  std::span<const int32_t> classes_;
  uint32_t columns_;
  uint64_t seed_;
  std::vector<float> leaf_means_, class_means_;  // leaves × columns, classes × columns
};

}  // namespace cgcn
