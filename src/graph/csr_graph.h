// The adjacency matrix A: compressed sparse rows, immutable, rows sorted, each entry once.
//
// Row v lists the nodes that v aggregates from (Σ_j A_vj x_j in the paper's notation). In an undirected graph both
// directions of an edge are stored; a self-loop is one entry. In a directed one an edge u → v is entry A_uv.
#pragma once

#include <cstdint>
#include <span>

#include "common/error.h"
#include "common/shared_array.h"

namespace cgcn {

using NodeId = uint32_t;
using EdgeOffset = uint64_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

class CsrGraph {
 public:
  CsrGraph() = default;
  // offsets has n + 1 values; weights is empty (every entry counts 1) or as long as targets.
  CsrGraph(SharedArray<EdgeOffset> offsets, SharedArray<NodeId> targets, SharedArray<float> weights, bool directed)
      : offsets_(std::move(offsets)), targets_(std::move(targets)), weights_(std::move(weights)), directed_(directed) {
    CGCN_CHECK(!offsets_.empty() && offsets_[offsets_.size() - 1] == targets_.size());
    CGCN_CHECK(weights_.empty() || weights_.size() == targets_.size());
  }

  NodeId num_nodes() const { return offsets_.empty() ? 0 : static_cast<NodeId>(offsets_.size() - 1); }
  uint64_t num_entries() const { return targets_.size(); }
  bool directed() const { return directed_; }
  bool weighted() const { return !weights_.empty(); }

  uint64_t degree(NodeId v) const { return offsets_[v + 1] - offsets_[v]; }
  std::span<const NodeId> neighbours(NodeId v) const { return targets_.span().subspan(offsets_[v], degree(v)); }
  // The weights of row v; only if weighted().
  std::span<const float> neighbour_weights(NodeId v) const { return weights_.span().subspan(offsets_[v], degree(v)); }

  // The arrays with what keeps them alive, for another view of the same rows.
  const SharedArray<EdgeOffset>& shared_offsets() const { return offsets_; }
  const SharedArray<NodeId>& shared_targets() const { return targets_; }
  const SharedArray<float>& shared_weights() const { return weights_; }

  std::span<const EdgeOffset> offsets() const { return offsets_; }
  std::span<const NodeId> targets() const { return targets_; }
  std::span<const float> weights() const { return weights_; }

  uint64_t stored_bytes() const {
    return offsets_.size() * sizeof(EdgeOffset) + targets_.size() * sizeof(NodeId) + weights_.size() * sizeof(float);
  }
  // Gives back the mapped pages of these rows' entries; the offsets stay.
  void release_rows(size_t begin, size_t end) const {
    targets_.release(offsets_[begin], offsets_[end]);
    if (weighted()) weights_.release(offsets_[begin], offsets_[end]);
  }

  uint64_t count_self_loops() const;
  // Edges as people count them: each undirected edge once, a self-loop once; entries if directed.
  uint64_t num_edges() const;

 private:
  SharedArray<EdgeOffset> offsets_;
  SharedArray<NodeId> targets_;
  SharedArray<float> weights_;
  bool directed_ = false;
};

}  // namespace cgcn
