#include "graph/graph_builder.h"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "common/interrupt.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/threads.h"

namespace cgcn {

namespace {

constexpr size_t kSortedRows = 1024;
constexpr uint64_t kLeastAtOnce = uint64_t{8} << 20;  // entries of a range of rows: 32 MiB

// A short row: each target goes where as many others are smaller, which needs no branches and vectorises. Repeated ones
// go to the same place and leave gaps, which are closed.
template <size_t kMost>
size_t rank_and_merge(NodeId* targets, size_t size) {
  NodeId values[kMost], ranks[kMost] = {}, sorted[kMost];
  std::copy_n(targets, size, values);
  std::fill(values + size, values + kMost, kNoNode);
  std::fill_n(sorted, kMost, kNoNode);
  for (size_t j = 0; j < size; ++j)
    for (size_t i = 0; i < kMost; ++i) ranks[i] += values[j] < values[i] ? 1 : 0;
  for (size_t i = 0; i < size; ++i) sorted[ranks[i]] = values[i];
  return static_cast<size_t>(std::copy_if(sorted, sorted + size, targets, [](NodeId v) { return v != kNoNode; }) -
                             targets);
}

// Sorts targets and merges repeated ones. Returns the new length.
size_t sort_and_merge(NodeId* targets, size_t size) {
  if (!std::is_sorted(targets, targets + size)) {
    if (size <= 16) return rank_and_merge<16>(targets, size);
    if (size <= 32) return rank_and_merge<32>(targets, size);
    if (size <= 64) return rank_and_merge<64>(targets, size);
    std::sort(targets, targets + size);
  }
  return static_cast<size_t>(std::unique(targets, targets + size) - targets);
}

// The same, adding the weights of repeated targets.
size_t sort_and_merge(NodeId* targets, float* weights, size_t size, std::vector<std::pair<NodeId, float>>& scratch) {
  scratch.clear();
  for (size_t i = 0; i < size; ++i) scratch.emplace_back(targets[i], weights[i]);
  // Stable, so that weights are added in the order of the file: the same sum each time.
  std::stable_sort(scratch.begin(), scratch.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t length = 0;
  for (const auto& [target, weight] : scratch) {
    if (length > 0 && targets[length - 1] == target) {
      weights[length - 1] += weight;
    } else {
      targets[length] = target;
      weights[length++] = weight;
    }
  }
  return length;
}

class RowBuilder {
 public:
  RowBuilder(NodeId n, EdgeSource& edges, const BuildOptions& options)
      : n_(n), edges_(edges), options_(options), weighted_(edges.weighted()), rows_(n, Row{0, 0}) {}

  BuiltRows run(const RowSink& sink, BuildCounts& counts) {
    count(counts);
    BuiltRows built{.degrees = Buffer<uint32_t>(n_), .entries = 0, .loops = 0, .weighted = weighted_};
    for (NodeId first = 0; first < n_;) {
      const NodeId last = end_of_range(first);
      place(first, last);
      if (last == n_) edges_.release();
      sort(first, last, counts, built);
      built.entries += hand_over(first, last, sink, built.degrees);
      first = last;
    }
    if (n_ == 0) edges_.release();
    return built;
  }

 private:
  // A row's entries as the source has them (given), then those that are the reverse of another row's. Before a range is
  // placed these are counts; while it is, where the next entry goes; afterwards, where each of the two kinds ends.
  struct Row {
    uint32_t given, reverse;
  };
  bool skips(NodeId u, NodeId v) const { return u == v && !options_.keep_self_loops; }
  bool reverses(NodeId u, NodeId v) const { return u != v && !options_.directed; }

  void count(BuildCounts& counts) {
    uint64_t loops = 0;
    edges_.visit([&](const EdgeRun& run) {
      throw_if_interrupted();
      counts.entries += run.size;
      for (size_t i = 0; i < run.size; ++i) {
        const NodeId u = run.from[i], v = run.to[i];
        CGCN_CHECK(u < n_ && v < n_);
        loops += u == v ? 1 : 0;
        if (skips(u, v)) continue;
        ++rows_[u].given;
        if (reverses(u, v)) ++rows_[v].reverse;
      }
    });
    total_ = (counts.entries - loops) * (options_.directed ? 1 : 2) + (options_.keep_self_loops ? loops : 0);
    if (!options_.keep_self_loops) counts.self_loops = loops;
    uint64_t counted = 0;
    for (const Row& row : rows_) counted += uint64_t{row.given} + row.reverse;
    if (counted != total_) fail_too_many();
    at_once_ = options_.entries_at_once > 0 ? options_.entries_at_once : std::max(kLeastAtOnce, total_ / 6);
    at_once_ = std::min<uint64_t>(at_once_, UINT32_MAX);  // places in a range are 32-bit
    if (options_.memory != UINT64_MAX) at_once_ = std::min(at_once_, fitting_entries());
  }

  // What the budget leaves for entries after the degrees. A row is never cut.
  uint64_t fitting_entries() {
    const uint64_t entry = weighted_ ? 12 : 6, degrees = uint64_t{n_} * sizeof(uint32_t);  // with room to sort
    uint64_t longest = 0;
    for (const Row& row : rows_) longest = std::max(longest, uint64_t{row.given} + row.reverse);
    const uint64_t least = degrees + std::max(longest, total_ / 64) * entry;
    if (memory_left(options_.memory) < least) edges_.spill();
    const uint64_t left = memory_left(options_.memory);
    if (left < least) refuse_memory_left(least, "the edges of this graph");
    return (left - degrees) / entry;
  }

  [[noreturn]] static void fail_too_many() { throw Error("a node has more than 4,294,967,295 edge entries"); }

  // Also turns the rows' counts into places.
  NodeId end_of_range(NodeId first) {
    uint64_t at = 0;
    NodeId v = first;
    for (; v < n_; ++v) {
      const uint64_t size = uint64_t{rows_[v].given} + rows_[v].reverse;
      if (v > first && at + size > at_once_) break;
      if (at + size > UINT32_MAX) fail_too_many();
      const auto begin = static_cast<uint32_t>(at);
      rows_[v] = {begin, begin + rows_[v].given};
      at += size;
    }
    if (at > targets_.size()) {
      targets_ = Buffer<NodeId>(at);
      prefer_huge_pages(targets_.data(), at * sizeof(NodeId));  // entries go anywhere in it
      if (weighted_) weights_ = Buffer<float>(at);
    }
    return v;
  }

  // Slots are found for a batch of edges and asked for before the first is written, since they lie anywhere.
  void place(NodeId first, NodeId last) {
    struct Entry {
      uint32_t slot;
      NodeId target;
      uint32_t edge;
    };
    constexpr size_t kBatch = 64;
    Entry entries[2 * kBatch];
    const NodeId width = last - first;
    edges_.visit([&](const EdgeRun& run) {
      throw_if_interrupted();
      for (size_t begin = 0; begin < run.size; begin += kBatch) {
        const size_t end = std::min(run.size, begin + kBatch);
        size_t count = 0;
        const auto find_slot = [&](uint32_t& next, NodeId target, size_t edge) {
          __builtin_prefetch(&targets_[next], 1);
          entries[count++] = {next++, target, static_cast<uint32_t>(edge)};
        };
        for (size_t i = begin; i < end; ++i) {
          const NodeId u = run.from[i], v = run.to[i];
          if (u - first < width && !skips(u, v)) find_slot(rows_[u].given, v, i);
          if (v - first < width && reverses(u, v)) find_slot(rows_[v].reverse, u, i);
        }
        for (size_t i = 0; i < count; ++i) targets_[entries[i].slot] = entries[i].target;
        if (weighted_)
          for (size_t i = 0; i < count; ++i) weights_[entries[i].slot] = run.weights[entries[i].edge];
      }
    });
  }

  uint32_t begin_of(NodeId first, NodeId v) const { return v == first ? 0 : rows_[v - 1].reverse; }

  // Each row of the range: sorted, each target once. Its length goes to the degrees.
  void sort(NodeId first, NodeId last, BuildCounts& counts, BuiltRows& built) {
    std::atomic<uint64_t> duplicates{0}, one_directional{0}, loops{0};
    parallel_blocks(last - first, kSortedRows, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      std::vector<NodeId> scratch;
      std::vector<std::pair<NodeId, float>> pairs;
      uint64_t repeated = 0, missing = 0, kept = 0;
      for (NodeId v = first + static_cast<NodeId>(begin); v < first + end; ++v) {
        const uint32_t at = begin_of(first, v);
        const size_t given = rows_[v].given - at, reverse = rows_[v].reverse - rows_[v].given;
        NodeId* targets = targets_.data() + at;
        float* weights = weighted_ ? weights_.data() + at : nullptr;
        const size_t own = weighted_ ? sort_and_merge(targets, weights, given, pairs) : sort_and_merge(targets, given);
        repeated += given - own;
        size_t length = own;
        if (reverse > 0) {
          length = weighted_ ? merge_reverse(targets, weights, own, given, reverse, pairs)
                             : merge_reverse(targets, own, given, reverse, scratch);
          missing += length - own;
        }
        if (options_.keep_self_loops) kept += std::binary_search(targets, targets + length, v) ? 1 : 0;
        built.degrees[v] = static_cast<uint32_t>(length);
      }
      duplicates += repeated;
      one_directional += missing;
      loops += kept;
    });
    counts.duplicates += duplicates;
    counts.one_directional += one_directional;
    built.loops += loops;
    if (options_.keep_self_loops) counts.self_loops += loops;
  }

  // targets[0, own) are the row's own, targets[given, given + reverse) the reverses: their union, sorted, in front.
  static size_t merge_reverse(NodeId* targets, size_t own, size_t given, size_t reverse, std::vector<NodeId>& scratch) {
    const size_t others = sort_and_merge(targets + given, reverse);
    if (own == 0) {
      std::copy_n(targets + given, others, targets);
      return others;
    }
    scratch.resize(own + others);
    const NodeId* b = targets + given;
    size_t i = 0, j = 0, length = 0;
    while (i < own && j < others) {  // without branches that depend on the data
      const NodeId x = targets[i], y = b[j];
      scratch[length++] = std::min(x, y);
      i += x <= y ? 1 : 0;
      j += y <= x ? 1 : 0;
    }
    length = static_cast<size_t>(std::copy(targets + i, targets + own, scratch.data() + length) - scratch.data());
    length = static_cast<size_t>(std::copy(b + j, b + others, scratch.data() + length) - scratch.data());
    std::copy_n(scratch.data(), length, targets);
    return length;
  }

  // If both directions came with weights, each gets their mean.
  static size_t merge_reverse(NodeId* targets, float* weights, size_t own, size_t given, size_t reverse,
                              std::vector<std::pair<NodeId, float>>& scratch) {
    const size_t others = sort_and_merge(targets + given, weights + given, reverse, scratch);
    scratch.clear();
    size_t i = 0, j = given;
    const size_t end = given + others;
    while (i < own || j < end) {
      if (j == end || (i < own && targets[i] < targets[j])) {
        scratch.emplace_back(targets[i], weights[i]);
        ++i;
      } else if (i == own || targets[j] < targets[i]) {
        scratch.emplace_back(targets[j], weights[j]);
        ++j;
      } else {
        scratch.emplace_back(targets[i], 0.5f * (weights[i] + weights[j]));
        ++i;
        ++j;
      }
    }
    for (size_t k = 0; k < scratch.size(); ++k) std::tie(targets[k], weights[k]) = scratch[k];
    return scratch.size();
  }

  uint64_t hand_over(NodeId first, NodeId last, const RowSink& sink, const Buffer<uint32_t>& degrees) {
    size_t end = 0;  // close the gaps, front to back
    for (NodeId v = first; v < last; ++v) {
      const uint32_t at = begin_of(first, v);
      if (at != end) {
        std::copy_n(targets_.begin() + at, degrees[v], targets_.begin() + end);
        if (weighted_) std::copy_n(weights_.begin() + at, degrees[v], weights_.begin() + end);
      }
      end += degrees[v];
    }
    sink({targets_.data(), end}, weighted_ ? std::span<const float>(weights_.data(), end) : std::span<const float>());
    return end;
  }

  NodeId n_;
  EdgeSource& edges_;
  BuildOptions options_;
  bool weighted_;
  uint64_t total_ = 0, at_once_ = 0;
  Buffer<Row> rows_;
  Buffer<NodeId> targets_;  // of the range in hand
  Buffer<float> weights_;
};

}  // namespace

BuiltRows build_rows(NodeId num_nodes, EdgeSource& edges, const BuildOptions& options, BuildCounts* counts,
                     const RowSink& sink) {
  BuildCounts found;
  BuiltRows built = RowBuilder(num_nodes, edges, options).run(sink, found);
  if (counts != nullptr) *counts = found;
  return built;
}

CsrGraph build_graph(NodeId num_nodes, EdgeSource& edges, const BuildOptions& options, BuildCounts* counts) {
  std::vector<NodeId> targets;
  std::vector<float> weights;
  const BuiltRows built = build_rows(num_nodes, edges, options, counts, [&](auto more_targets, auto more_weights) {
    targets.insert(targets.end(), more_targets.begin(), more_targets.end());
    weights.insert(weights.end(), more_weights.begin(), more_weights.end());
  });
  Buffer<EdgeOffset> offsets(size_t{num_nodes} + 1, 0);
  for (NodeId v = 0; v < num_nodes; ++v) offsets[size_t{v} + 1] = offsets[v] + built.degrees[v];
  return {std::move(offsets), std::move(targets), std::move(weights), options.directed};
}

}  // namespace cgcn
