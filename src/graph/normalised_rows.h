// Rows of N(A), made when they are needed: the matrix itself would take as much memory as the graph.
#pragma once

#include <span>
#include <vector>

#include "common/buffer.h"
#include "common/sparse_view.h"
#include "graph/normalisation.h"

namespace cgcn {

class NormalisedRows {
 public:
  NormalisedRows(const CsrGraph& graph, const Normalisation& normalisation);

  const CsrGraph& graph() const { return graph_; }
  const Normalisation& normalisation() const { return normalisation_; }
  float scale(NodeId v) const { return scales_[v]; }
  bool has_diagonal() const { return normalisation_.has_diagonal(); }
  uint64_t max_length(NodeId v) const { return graph_.degree(v) + (has_diagonal() ? 1 : 0); }
  uint64_t bytes() const { return scales_.size() * sizeof(float); }

  // N_vu from a_vu; on the diagonal from a_vv, which is 0 if v has no loop.
  float value(NodeId v, NodeId u, float weight) const {
    if (u == v) return normalisation_.diagonal(scales_[v], weight);
    return normalisation_.link(scales_[v], scales_[u], weight);
  }
  // The value of the edge that is entry e of the graph, in row v.
  float value_at(NodeId v, EdgeOffset e) const {
    return value(v, graph_.targets()[e], graph_.weighted() ? graph_.weights()[e] : 1.0f);
  }

  // Calls use(column, value) for the entries of row v, columns rising.
  template <class Use>
  void for_each(NodeId v, Use&& use) const {
    bool diagonal_due = has_diagonal();
    for (EdgeOffset e = graph_.offsets()[v]; e < graph_.offsets()[size_t{v} + 1]; ++e) {
      const NodeId u = graph_.targets()[e];
      if (diagonal_due && u >= v) {
        if (u > v) use(v, value(v, v, 0));
        diagonal_due = false;
      }
      use(u, value_at(v, e));
    }
    if (diagonal_due) use(v, value(v, v, 0));
  }

  struct SparseRows {
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> columns;
    std::vector<float> values;
    SparseView view;
  };
  // Rows begin … end, or those of these nodes, into rows.view; its columns are the graph's nodes.
  void fill(size_t begin, size_t end, SparseRows& rows) const;
  void fill(std::span<const NodeId> nodes, SparseRows& rows) const;

 private:
  template <class NodeAt>
  void fill_rows(size_t count, NodeAt&& node_at, SparseRows& rows) const;

  CsrGraph graph_;
  Normalisation normalisation_;
  Buffer<float> scales_;
};

}  // namespace cgcn
