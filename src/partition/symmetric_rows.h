// The graph among the chosen nodes as a partitioner wants it: every edge in both directions, no loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "common/interrupt.h"
#include "common/threads.h"
#include "partition/metis.h"

namespace cgcn {

inline constexpr size_t kSymmetrisedRows = 4096;

// Where each node of the store is among the chosen ones; kNoNode if it is not.
inline Buffer<NodeId> positions_of(std::span<const NodeId> nodes, NodeId num_nodes) {
  Buffer<NodeId> position(num_nodes, kNoNode);
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i]] = static_cast<NodeId>(i);
  return position;
}

// The rows that a partitioner gets. Offset and Target: METIS has 32-bit indices, we have our own.
template <class Offset, class Target>
class SymmetricRows {
 public:
  SymmetricRows(const CsrGraph& graph, std::span<const NodeId> nodes)
      : graph_(graph), nodes_(nodes), position_(positions_of(nodes, graph.num_nodes())) {
    count();
    place();
    if (graph_.directed()) merge_reverses();
  }

  Buffer<Offset> offsets;
  Buffer<Target> targets;
  Buffer<float> weights;  // magnitudes; empty if the graph has none

 private:
  // Calls use(position of the neighbour, place in the graph) for each kept neighbour of row i.
  template <class Use>
  void for_each_kept(size_t i, Use&& use) const {
    const NodeId v = nodes_[i];
    for (EdgeOffset e = graph_.offsets()[v]; e < graph_.offsets()[size_t{v} + 1]; ++e) {
      const NodeId neighbour = graph_.targets()[e];
      if (neighbour != v && position_[neighbour] != kNoNode) use(position_[neighbour], e);
    }
  }

  // Row after row, on one thread.
  template <class Use>
  void for_each_row(Use&& use) const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (i % kSymmetrisedRows == 0) throw_if_interrupted();
      use(i);
    }
  }

  void count() {
    const size_t n = nodes_.size();
    Buffer<uint64_t> lengths(n, 0);
    parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      for (size_t i = begin; i < end; ++i) for_each_kept(i, [&](NodeId, EdgeOffset) { ++lengths[i]; });
      graph_.release_rows(nodes_[begin], size_t{nodes_[end - 1]} + 1);
    });
    if (graph_.directed())  // a place for the reverse of each
      for_each_row([&](size_t i) { for_each_kept(i, [&](NodeId j, EdgeOffset) { ++lengths[j]; }); });
    if constexpr (sizeof(Offset) == sizeof(int32_t))
      check_metis_size(n, std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}));
    offsets = Buffer<Offset>(n + 1);
    offsets[0] = 0;
    for (size_t i = 0; i < n; ++i) offsets[i + 1] = offsets[i] + static_cast<Offset>(lengths[i]);
    targets = Buffer<Target>(static_cast<size_t>(offsets[n]));
    if (graph_.weighted()) weights = Buffer<float>(targets.size());
  }

  void put(size_t slot, NodeId target, EdgeOffset from) {
    targets[slot] = static_cast<Target>(target);
    if (graph_.weighted()) weights[slot] = std::abs(graph_.weights()[from]);
  }

  void place() {
    const size_t n = nodes_.size();
    if (!graph_.directed()) {
      parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
        throw_if_interrupted();
        for (size_t i = begin; i < end; ++i) {
          auto slot = static_cast<size_t>(offsets[i]);
          for_each_kept(i, [&](NodeId j, EdgeOffset e) { put(slot++, j, e); });
        }
        graph_.release_rows(nodes_[begin], size_t{nodes_[end - 1]} + 1);
      });
      return;
    }
    Buffer<Offset> next(n);
    std::copy_n(offsets.begin(), n, next.begin());
    for_each_row([&](size_t i) {
      for_each_kept(i, [&](NodeId j, EdgeOffset e) {
        put(static_cast<size_t>(next[i]++), j, e);
        put(static_cast<size_t>(next[j]++), static_cast<NodeId>(i), e);
      });
    });
  }

  // A + Aᵀ: an entry that was there in both directions becomes one, its weights added.
  void merge_reverses() {
    const size_t n = nodes_.size();
    Buffer<Offset> lengths(n);
    parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      std::vector<std::pair<Target, float>> row;
      for (size_t i = begin; i < end; ++i) {
        row.clear();
        for (auto e = static_cast<size_t>(offsets[i]); e < static_cast<size_t>(offsets[i + 1]); ++e)
          row.emplace_back(targets[e], weights.empty() ? 1.0f : weights[e]);
        std::sort(row.begin(), row.end());
        const auto first = static_cast<size_t>(offsets[i]);
        size_t length = 0;
        for (size_t k = 0; k < row.size(); ++k) {
          const bool again = k > 0 && row[k].first == row[k - 1].first;
          if (!again) targets[first + length++] = row[k].first;
          if (!weights.empty())
            weights[first + length - 1] = row[k].second + (again ? weights[first + length - 1] : 0.0f);
        }
        lengths[i] = static_cast<Offset>(length);
      }
    });
    Offset end = 0;
    for (size_t i = 0; i < n; ++i) {  // close the gaps, front to back
      const auto first = static_cast<size_t>(offsets[i]), length = static_cast<size_t>(lengths[i]);
      std::copy_n(targets.begin() + first, length, targets.begin() + end);
      if (!weights.empty()) std::copy_n(weights.begin() + first, length, weights.begin() + end);
      offsets[i] = end;
      end += lengths[i];
    }
    offsets[n] = end;
  }

  const CsrGraph& graph_;
  std::span<const NodeId> nodes_;
  Buffer<NodeId> position_;
};

}  // namespace cgcn
