#include "train/inference_order.h"

#include <algorithm>

#include "common/threads.h"
#include "kernels/gemm.h"

namespace cgcn {
namespace {

constexpr uint64_t kCachedBytes = uint64_t{64} << 20;
constexpr uint32_t kNone = UINT32_MAX;

// The most frequent number, the smallest of equals.
uint32_t most_frequent(std::vector<uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  uint32_t best = kNone;
  size_t most = 0;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin;
    while (end < numbers.size() && numbers[end] == numbers[begin]) ++end;
    if (end - begin > most) {
      most = end - begin;
      best = numbers[begin];
    }
    begin = end;
  }
  return best;
}

}  // namespace

bool InferenceOrder::helps(uint64_t embedding_bytes) {
  return embedding_bytes > kCachedBytes && kernels::rows_are_independent();
}

InferenceOrder::InferenceOrder(const CsrGraph& graph, std::span<const NodeId> clustered,
                               std::span<const NodeId> offsets)
    : nodes_(graph.num_nodes()), rows_(graph.num_nodes(), kNone) {
  const size_t n = graph.num_nodes();
  const auto clusters = static_cast<uint32_t>(offsets.size() - 1);
  for (uint32_t c = 0; c < clusters; ++c)
    for (size_t r = offsets[c]; r < offsets[c + 1]; ++r) rows_[clustered[r]] = c;
  std::vector<NodeId>& joined = nodes_;  // the cluster of every node; without one: behind all
  constexpr size_t kBlock = 1024;
  parallel_blocks(n, kBlock, [&](size_t begin, size_t end) {
    std::vector<uint32_t> near;
    for (size_t v = begin; v < end; ++v) {
      joined[v] = rows_[v];
      if (joined[v] != kNone) continue;
      near.clear();
      for (const NodeId u : graph.neighbours(static_cast<NodeId>(v)))
        if (rows_[u] != kNone) near.push_back(rows_[u]);
      joined[v] = near.empty() ? clusters : most_frequent(near);
    }
  });
  std::vector<size_t> next(size_t{clusters} + 2, 0);
  for (const uint32_t c : joined) ++next[size_t{c} + 1];
  for (size_t c = 1; c < next.size(); ++c) next[c] += next[c - 1];
  for (size_t v = 0; v < n; ++v) rows_[v] = static_cast<NodeId>(next[joined[v]]++);
  for (size_t v = 0; v < n; ++v) nodes_[rows_[v]] = static_cast<NodeId>(v);
}

}  // namespace cgcn
