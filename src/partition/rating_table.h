// How strongly one node is linked to each group among its neighbours: a small hash table that is used again for every
// node.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace cgcn {

class RatingTable {
 public:
  struct Entry {
    uint32_t key, weight;
  };

  // Empty, with room for this many keys. There are many more slots than keys, so that the loop of add() hardly ever
  // turns: what it does then is without branches that cannot be foreseen.
  void begin(uint64_t keys) {
    for (size_t i = 0; i < size_; ++i) slots_[used_[i]].key = kEmpty;
    size_ = 0;
    const uint64_t bits = std::clamp<uint64_t>(std::bit_width(kSlotsPerKey * keys), 8, 31);
    shift_ = static_cast<uint32_t>(32 - bits);
    mask_ = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
    if (slots_.size() <= mask_) slots_.assign(size_t{mask_} + 1, {kEmpty, 0});
    if (used_.size() <= keys) used_.resize(keys + 1);
  }
  void add(uint32_t key, uint32_t weight) {
    uint32_t slot = (key * 0x9E3779B1u) >> shift_;
    while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask_;
    Entry& entry = slots_[slot];
    const bool is_new = entry.key == kEmpty;
    const uint32_t sum = (is_new ? 0 : entry.weight) + weight;
    entry = {key, sum < weight ? UINT32_MAX : sum};
    used_[size_] = slot;
    size_ += is_new ? 1 : 0;
  }
  size_t size() const { return size_; }
  const Entry& operator[](size_t i) const { return slots_[used_[i]]; }  // in the order in which keys came
  uint32_t weight_of(uint32_t key) const {
    uint32_t slot = (key * 0x9E3779B1u) >> shift_;
    while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask_;
    return slots_[slot].key == key ? slots_[slot].weight : 0;
  }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  static constexpr uint64_t kSlotsPerKey = 8;
  std::vector<Entry> slots_;
  std::vector<uint32_t> used_;
  size_t size_ = 0;
  uint32_t shift_ = 24, mask_ = 255;
};

// Calls use(group of the neighbour, entry) for the first `most` edges of v that count. Groups are fetched a few at a
// time before they are used: the misses of the cache then overlap.
template <class Graph, class Use>
void for_each_group(const Graph& graph, uint32_t v, const uint32_t* group_of, uint64_t most, Use&& use) {
  constexpr size_t kFetched = 64;
  uint32_t groups[kFetched];
  const uint64_t end = graph.row_end(v);
  const uint32_t* const targets = graph.targets.data();
  const auto use_one = [&](uint32_t group, uint64_t entry) {
    use(group, entry);
    --most;
  };
  for (uint64_t first = graph.row_begin(v); first < end && most > 0; first += kFetched) {
    const size_t count = std::min<uint64_t>(kFetched, end - first);
    if (graph.position.empty()) {
      for (size_t i = 0; i < count; ++i) groups[i] = group_of[targets[first + i]];
      for (size_t i = 0; i < count && most > 0; ++i)
        if (targets[first + i] != v) use_one(groups[i], first + i);
    } else {
      for (size_t i = 0; i < count; ++i) groups[i] = graph.target(first + i);
      for (size_t i = 0; i < count && most > 0; ++i)
        if (groups[i] != UINT32_MAX && groups[i] != v) use_one(group_of[groups[i]], first + i);
    }
  }
}

// Adds up the weights of v's edges by the group of the neighbour.
template <class Graph, class WeightOf>
void add_neighbours(const Graph& graph, uint32_t v, const uint32_t* group_of, WeightOf&& weight_of, RatingTable& table,
                    uint64_t most = UINT64_MAX) {
  for_each_group(graph, v, group_of, most, [&](uint32_t group, uint64_t e) { table.add(group, weight_of(e)); });
}

// Asks for what rating v will read: the groups of its first neighbours. Called a few nodes ahead.
template <class Graph>
void prefetch_groups(const Graph& graph, uint32_t v, const uint32_t* group_of) {
  constexpr uint64_t kAhead = 64;
  if (!graph.position.empty()) return;
  const uint64_t begin = graph.row_begin(v), end = std::min<uint64_t>(graph.row_end(v), begin + kAhead);
  const uint32_t* const targets = graph.targets.data();
  for (uint64_t e = begin; e < end; ++e) __builtin_prefetch(group_of + targets[e]);
}

// The calling thread's own.
inline RatingTable& rating_table() {
  thread_local RatingTable table;
  return table;
}

// A cheap bijective mixer, to break ties without preferring low numbers.
inline uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}

}  // namespace cgcn
