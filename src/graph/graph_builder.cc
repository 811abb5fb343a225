#include "graph/graph_builder.h"

#include <algorithm>
#include <numeric>

#include "common/threads.h"

namespace cgcn {

struct EdgeList::Chunk {
  static constexpr size_t kSize = size_t{1} << 18;
  explicit Chunk(bool weighted) : from(kSize), to(kSize), weights(weighted ? kSize : 0) {}
  Buffer<NodeId> from, to;
  Buffer<float> weights;
};

void EdgeList::add(NodeId from, NodeId to, float weight) {
  const size_t slot = size_ % Chunk::kSize;
  if (slot == 0) chunks_.push_back(std::make_shared<Chunk>(weighted_));
  Chunk& chunk = *chunks_.back();
  chunk.from[slot] = from;
  chunk.to[slot] = to;
  if (weighted_) chunk.weights[slot] = weight;
  ++size_;
}

void EdgeList::visit(const std::function<void(const EdgeRun&)>& use) const {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const Chunk& chunk = *chunks_[i];
    use({chunk.from.data(), chunk.to.data(), weighted_ ? chunk.weights.data() : nullptr,
         static_cast<size_t>(std::min<uint64_t>(Chunk::kSize, size_ - i * Chunk::kSize))});
  }
}

void EdgeList::release() {
  chunks_.clear();
  size_ = 0;
}

namespace {

constexpr size_t kRowBlock = 1024;

// Rows under construction: sorted, each target once.
struct Rows {
  Buffer<EdgeOffset> offsets;
  Buffer<NodeId> targets;
  Buffer<float> weights;  // empty where unweighted
  NodeId num_nodes() const { return static_cast<NodeId>(offsets.size() - 1); }
  bool weighted() const { return !weights.empty(); }
};

void prefix_sum(Buffer<EdgeOffset>& counts) {  // counts[v + 1] holds row v's count → offsets
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
}

// Counting sort by source node. Rows are in the source's order, duplicates and all.
Rows place(NodeId n, const EdgeSource& edges, BuildCounts& counts) {
  Rows rows{.offsets = Buffer<EdgeOffset>(size_t{n} + 1, 0), .targets = {}, .weights = {}};
  edges.visit([&](const EdgeRun& run) {
    counts.entries += run.size;
    for (size_t i = 0; i < run.size; ++i) {
      CGCN_CHECK(run.from[i] < n && run.to[i] < n);
      ++rows.offsets[size_t{run.from[i]} + 1];
    }
  });
  prefix_sum(rows.offsets);
  rows.targets = Buffer<NodeId>(rows.offsets[n]);
  if (edges.weighted()) rows.weights = Buffer<float>(rows.offsets[n]);
  Buffer<EdgeOffset> next(n);
  std::copy_n(rows.offsets.begin(), n, next.begin());
  edges.visit([&](const EdgeRun& run) {
    for (size_t i = 0; i < run.size; ++i) {
      const EdgeOffset slot = next[run.from[i]]++;
      rows.targets[slot] = run.to[i];
      if (run.weights != nullptr) rows.weights[slot] = run.weights[i];
    }
  });
  return rows;
}

// Sorts one row and merges repeated targets, adding their weights. Returns the new length.
size_t sort_and_merge(std::span<NodeId> targets, float* weights, std::vector<std::pair<NodeId, float>>& scratch) {
  if (weights == nullptr) {
    std::sort(targets.begin(), targets.end());
    return static_cast<size_t>(std::unique(targets.begin(), targets.end()) - targets.begin());
  }
  scratch.clear();
  for (size_t i = 0; i < targets.size(); ++i) scratch.emplace_back(targets[i], weights[i]);
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

void sort_rows(Rows& rows, bool keep_self_loops, BuildCounts& counts) {
  const NodeId n = rows.num_nodes();
  Buffer<EdgeOffset> length(size_t{n} + 1, 0);
  Buffer<uint32_t> loops(n, 0);
  parallel_blocks(n, kRowBlock, [&](size_t begin, size_t end) {
    std::vector<std::pair<NodeId, float>> scratch;
    for (size_t v = begin; v < end; ++v) {
      const EdgeOffset first = rows.offsets[v];
      NodeId* targets = rows.targets.data() + first;
      float* weights = rows.weighted() ? rows.weights.data() + first : nullptr;
      if (!keep_self_loops)
        loops[v] = static_cast<uint32_t>(std::count(targets, targets + (rows.offsets[v + 1] - first), v));
      size_t size = sort_and_merge({targets, rows.offsets[v + 1] - first}, weights, scratch);
      NodeId* loop = std::lower_bound(targets, targets + size, static_cast<NodeId>(v));
      if (loop != targets + size && *loop == v) {
        if (keep_self_loops) {
          loops[v] = 1;
        } else {
          if (weights != nullptr) std::copy(weights + (loop - targets) + 1, weights + size, weights + (loop - targets));
          std::copy(loop + 1, targets + size, loop);
          --size;
        }
      }
      length[v + 1] = size;
    }
  });
  for (NodeId v = 0; v < n; ++v) counts.self_loops += loops[v];
  prefix_sum(length);
  const uint64_t loops_dropped = keep_self_loops ? 0 : counts.self_loops;
  counts.duplicates = rows.offsets[n] - length[n] - loops_dropped;
  for (NodeId v = 0; v < n; ++v) {  // close the gaps, front to back
    const size_t size = length[size_t{v} + 1] - length[v];
    std::copy_n(rows.targets.begin() + rows.offsets[v], size, rows.targets.begin() + length[v]);
    if (rows.weighted()) std::copy_n(rows.weights.begin() + rows.offsets[v], size, rows.weights.begin() + length[v]);
  }
  rows.offsets = std::move(length);
}

// Calls use(u, v, reverse) for every entry u → v, reverse being the place of v → u or -1. As u rises, so does the place
// in row v where u would be: one cursor a row finds every reverse in linear time.
template <class Use>
void for_each_with_reverse(const Rows& rows, Use&& use) {
  const NodeId n = rows.num_nodes();
  Buffer<EdgeOffset> cursor(n);
  std::copy_n(rows.offsets.begin(), n, cursor.begin());
  for (NodeId u = 0; u < n; ++u)
    for (EdgeOffset e = rows.offsets[u]; e < rows.offsets[size_t{u} + 1]; ++e) {
      const NodeId v = rows.targets[e];
      EdgeOffset& at = cursor[v];
      const EdgeOffset end = rows.offsets[size_t{v} + 1];
      while (at < end && rows.targets[at] < u) ++at;
      use(u, v, e, at < end && rows.targets[at] == u ? static_cast<int64_t>(at) : int64_t{-1});
    }
}

// Adds the reverse of every one-directional entry. Where both directions came with weights, each gets their mean.
Rows symmetrise(Rows rows, BuildCounts& counts) {
  const NodeId n = rows.num_nodes();
  Buffer<EdgeOffset> offsets(size_t{n} + 1, 0);
  for_each_with_reverse(rows, [&](NodeId, NodeId v, EdgeOffset, int64_t reverse) {
    if (reverse < 0) {
      ++offsets[size_t{v} + 1];
      ++counts.one_directional;
    }
  });
  if (rows.weighted())
    for_each_with_reverse(rows, [&](NodeId u, NodeId v, EdgeOffset e, int64_t reverse) {
      if (reverse >= 0 && u < v)
        rows.weights[e] = rows.weights[reverse] = 0.5f * (rows.weights[e] + rows.weights[reverse]);
    });
  if (counts.one_directional == 0) return rows;

  for (NodeId v = 0; v < n; ++v) offsets[size_t{v} + 1] += rows.offsets[size_t{v} + 1] - rows.offsets[v];
  prefix_sum(offsets);
  Rows full{.offsets = std::move(offsets), .targets = Buffer<NodeId>(0), .weights = {}};
  full.targets = Buffer<NodeId>(full.offsets[n]);
  if (rows.weighted()) full.weights = Buffer<float>(full.offsets[n]);
  // Each row: the missing reverses first (they come sorted, u rising), the row's own entries behind them; then a merge.
  Buffer<EdgeOffset> next(n);
  std::copy_n(full.offsets.begin(), n, next.begin());
  for_each_with_reverse(rows, [&](NodeId u, NodeId v, EdgeOffset e, int64_t reverse) {
    if (reverse >= 0) return;
    full.targets[next[v]] = u;
    if (rows.weighted()) full.weights[next[v]] = rows.weights[e];
    ++next[v];
  });
  parallel_blocks(n, kRowBlock, [&](size_t begin, size_t end) {
    std::vector<std::pair<NodeId, float>> scratch;
    for (size_t v = begin; v < end; ++v) {
      const size_t own = rows.offsets[v + 1] - rows.offsets[v];
      std::copy_n(rows.targets.begin() + rows.offsets[v], own, full.targets.begin() + next[v]);
      NodeId* row = full.targets.begin() + full.offsets[v];
      if (!rows.weighted()) {
        std::inplace_merge(row, full.targets.begin() + next[v], row + (full.offsets[v + 1] - full.offsets[v]));
      } else {
        std::copy_n(rows.weights.begin() + rows.offsets[v], own, full.weights.begin() + next[v]);
        sort_and_merge({row, full.offsets[v + 1] - full.offsets[v]}, full.weights.begin() + full.offsets[v], scratch);
      }
    }
  });
  return full;
}

}  // namespace

CsrGraph build_graph(NodeId num_nodes, EdgeSource& edges, const BuildOptions& options, BuildCounts* counts) {
  BuildCounts found;
  Rows rows = place(num_nodes, edges, found);
  edges.release();
  sort_rows(rows, options.keep_self_loops, found);
  if (!options.directed) rows = symmetrise(std::move(rows), found);
  if (counts != nullptr) *counts = found;
  const size_t entries = rows.offsets[num_nodes];
  SharedArray<NodeId> targets = SharedArray<NodeId>(std::move(rows.targets)).first(entries);
  SharedArray<float> weights;
  if (rows.weighted()) weights = SharedArray<float>(std::move(rows.weights)).first(entries);
  return {std::move(rows.offsets), std::move(targets), std::move(weights), options.directed};
}

}  // namespace cgcn
