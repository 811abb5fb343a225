// Edges that lie in arrays, replayed from there: two columns of ids, or a compressed sparse matrix.
#pragma once

#include <optional>

#include "graph/graph_builder.h"
#include "io/numpy/array.h"

namespace cgcn {

// `count` ids in an array, in storage order: first, first + stride …
struct IdColumn {
  Array array;
  uint64_t first = 0, stride = 1;
};

// The edges from[i] → to[i]: the two rows or columns of an edge_index, or row and col of a COO matrix.
class ColumnEdges final : public EdgeSource {
 public:
  // weights: none if they are all 1. Ids are checked against num_nodes while they are visited.
  ColumnEdges(IdColumn from, IdColumn to, uint64_t count, std::optional<Array> weights, NodeId num_nodes);
  // An edge_index of shape [2, E] or [E, 2] (a 2 × 2 one is taken as [2, E]).
  static ColumnEdges from_edge_index(const Array& edge_index, std::optional<Array> weights, NodeId num_nodes);

  bool weighted() const override { return weights_.has_value(); }
  void visit(const std::function<void(const EdgeRun&)>& use) const override;
  uint64_t largest_id_plus_one() const;  // for sources that do not say how many nodes there are

 private:
  IdColumn from_, to_;
  uint64_t count_;
  std::optional<Array> weights_;
  NodeId num_nodes_;
};

// Error, naming `where`, unless this is a node; a finite weight that is not negative, as for edges in text.
NodeId check_node(int64_t id, uint64_t edge, NodeId num_nodes, const std::string& where);
float check_weight(float weight, uint64_t edge, const std::string& where);

// Whether every element is 1: weights that say nothing are not kept.
bool all_ones(const Array& array);

}  // namespace cgcn
