// Sums over slots 0 … S-1 in a fixed binary tree, so that the bits of a sum depend on S alone, and not on who added
// what:
//
//   node (level, index) covers the slots index·2^level … (index + 1)·2^level - 1; its sum is that of its two halves, or
//   of the first one if the second has no slots.
//
// A rank that has some neighbouring slots adds up the whole subtrees in them; who gets all of these adds them up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cgcn::dist {

struct SlotRange {
  uint32_t begin = 0, end = 0;
  uint32_t size() const { return end - begin; }
};

// The slots of a rank: neighbours, and as many as the others' but for one.
inline SlotRange slots_of(uint32_t rank, uint32_t ranks, uint32_t slots) {
  const uint32_t each = slots / ranks, more = slots % ranks;
  const uint32_t begin = rank * each + std::min(rank, more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

struct TreeNode {
  uint32_t level = 0, index = 0;  // a slot: level 0
  bool operator==(const TreeNode&) const = default;
};

template <class Value>
class TreeSum {
 public:
  struct Subtotal {
    TreeNode node;
    Value value;
  };
  explicit TreeSum(uint32_t slots) : slots_(slots) {}

  // In the order of slots. add(a, b) makes a the sum of both.
  template <class Add>
  void push(TreeNode node, Value value, Add&& add) {
    subtotals_.push_back({node, std::move(value)});
    while (subtotals_.back().node.index > 0) {
      TreeNode& top = subtotals_.back().node;
      const TreeNode above{top.level + 1, top.index / 2};
      if (top.index % 2 == 0) {  // a first half: alone only if the second has no slots
        if ((uint64_t{top.index} + 1) << top.level < slots_) return;
        top = above;
        continue;
      }
      if (subtotals_.size() < 2 || subtotals_[subtotals_.size() - 2].node != TreeNode{top.level, top.index - 1}) return;
      Subtotal& left = subtotals_[subtotals_.size() - 2];
      add(left.value, subtotals_.back().value);
      left.node = above;
      subtotals_.pop_back();
    }
  }

  // What has been added up so far; one subtotal once all slots are in.
  std::vector<Subtotal>& subtotals() { return subtotals_; }

 private:
  uint32_t slots_;
  std::vector<Subtotal> subtotals_;
};

// The subtrees that a rank with these slots sends.
inline std::vector<TreeNode> subtrees_of(SlotRange range, uint32_t slots) {
  TreeSum<char> sum(slots);
  for (uint32_t slot = range.begin; slot < range.end; ++slot) sum.push({0, slot}, 0, [](char, char) {});
  std::vector<TreeNode> nodes;
  for (const auto& subtotal : sum.subtotals()) nodes.push_back(subtotal.node);
  return nodes;
}

}  // namespace cgcn::dist
