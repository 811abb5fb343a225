// Texts and 64-bit integers to consecutive numbers, compactly: open addressing over one text arena, or one array of
// integers. 8 bytes a slot, at most two thirds full; nothing is allocated per entry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/hash.h"
#include "graph/csr_graph.h"

namespace cgcn {

// Which number has which hash; what is behind a number is the caller's.
class SlotTable {
 public:
  // The number for which `same(number)` holds among those put in with this hash, or kNoNode.
  template <class Same>
  NodeId find(uint64_t hash, Same&& same) const {
    if (slots_.empty()) return kNoNode;
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].number == kNoNode) return kNoNode;
      if (slots_[i].tag == tag && same(slots_[i].number)) return slots_[i].number;
    }
  }
  // `rehash(number)` gives the hash of one that is in already, for when the table grows.
  template <class Rehash>
  void insert(uint64_t hash, NodeId number, Rehash&& rehash) {
    if (3 * (used_ + 1) > 2 * slots_.size()) {
      slots_.assign(slots_.empty() ? 1024 : 2 * slots_.size(), Slot{});
      for (NodeId known = 0; known < number; ++known) place(rehash(known), known);
    }
    place(hash, number);
    ++used_;
  }

 private:
  struct Slot {
    NodeId number = kNoNode;
    uint32_t tag = 0;
  };
  void place(uint64_t hash, NodeId number) {
    size_t i = hash & (slots_.size() - 1);
    while (slots_[i].number != kNoNode) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {number, static_cast<uint32_t>(hash >> 32)};
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class TextTable {
 public:
  NodeId find(std::string_view text) const {
    return slots_.find(hash(text), [&](NodeId number) { return (*this)[number] == text; });
  }
  // The text's number: a known one, or the next.
  NodeId put(std::string_view text) {
    const NodeId known = find(text);
    if (known != kNoNode) return known;
    const NodeId number = size();
    if (number + 1 == kNoNode) throw Error("more than 4,294,967,293 different names");
    arena_.insert(arena_.end(), text.begin(), text.end());
    offsets_.push_back(arena_.size());
    slots_.insert(hash(text), number, [&](NodeId known_number) { return hash((*this)[known_number]); });
    return number;
  }
  std::string_view operator[](NodeId number) const {
    return {arena_.data() + offsets_[number], offsets_[number + 1] - offsets_[number]};
  }
  NodeId size() const { return static_cast<NodeId>(offsets_.size() - 1); }
  // The arrays themselves, as the store keeps them; the table is empty afterwards.
  std::vector<uint64_t> take_offsets() { return std::move(offsets_); }
  std::vector<char> take_arena() { return std::move(arena_); }

 private:
  static uint64_t hash(std::string_view text) { return checksum(text.data(), text.size()); }
  SlotTable slots_;
  std::vector<uint64_t> offsets_{0};
  std::vector<char> arena_;
};

class IntegerTable {
 public:
  NodeId find(int64_t value) const {
    return slots_.find(hash(value), [&](NodeId number) { return values_[number] == value; });
  }
  NodeId put(int64_t value) {
    const NodeId known = find(value);
    if (known != kNoNode) return known;
    const auto number = static_cast<NodeId>(values_.size());
    if (number + 1 == kNoNode) throw Error("more than 4,294,967,293 different numbers");
    values_.push_back(value);
    slots_.insert(hash(value), number, [&](NodeId known_number) { return hash(values_[known_number]); });
    return number;
  }
  int64_t operator[](NodeId number) const { return values_[number]; }
  NodeId size() const { return static_cast<NodeId>(values_.size()); }
  std::vector<int64_t> take_values() { return std::move(values_); }

 private:
  static uint64_t hash(int64_t value) {  // SplitMix64's finaliser
    auto z = static_cast<uint64_t>(value);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  SlotTable slots_;
  std::vector<int64_t> values_;
};

}  // namespace cgcn
