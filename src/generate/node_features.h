// Features: a few hidden quantities, the class if there is one, each along a direction of its own, and noise.
//
// A hidden quantity is a node's own draw plus what its small community and the community above share. Labels are made
// of its means over neighbours (teacher.h): what a graph convolution can recover and features alone cannot.
#pragma once

#include "generate/communities.h"

namespace cgcn {

inline constexpr uint32_t kHidden = 4;  // quantities
using HiddenRow = std::array<float, kHidden>;

class NodeFeatures {
 public:
  // classes: of each node, or empty if nodes have no single class. columns: not the shape's if that stores none.
  NodeFeatures(const Shape& shape, const Communities& communities, uint32_t columns, std::span<const int32_t> classes,
               uint64_t seed);

  uint32_t columns() const { return columns_; }
  void row(NodeId node, std::span<float> out) const;
  // What the row shows of the hidden quantities: its components along their directions.
  HiddenRow read_hidden(std::span<const float> row) const;

 private:
  const Communities& communities_;
  std::span<const int32_t> classes_;
  uint32_t columns_;
  float own_;
  uint64_t seed_;
  std::vector<HiddenRow> leaf_hidden_;                // per leaf: what its nodes share
  std::vector<float> directions_, class_directions_;  // kHidden × columns, classes × columns
};

}  // namespace cgcn
