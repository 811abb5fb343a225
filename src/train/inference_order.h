// The order in which exact inference keeps the rows of a graph and works on them: nodes of a cluster are neighbours, so
// that most of the rows that an aggregation reads are in the cache. A row is summed and multiplied as in any other
// order: no bit depends on it.
#pragma once

#include <span>
#include <vector>

#include "graph/csr_graph.h"

namespace cgcn {

class InferenceOrder {
 public:
  // clustered: nodes in the order of their clusters, of which cluster c has those from offsets[c] on. Other nodes join
  // the cluster that most of their neighbours are in.
  InferenceOrder(const CsrGraph& graph, std::span<const NodeId> clustered, std::span<const NodeId> offsets);

  std::span<const NodeId> nodes() const { return nodes_; }  // row → node
  std::span<const NodeId> rows() const { return rows_; }    // node → row

  static uint64_t bytes(uint64_t nodes) { return 2 * nodes * sizeof(NodeId); }
  // Whether it can pay: embeddings of so many bytes are more than a cache holds, and rows may be multiplied in any
  // order.
  static bool helps(uint64_t embedding_bytes);

 private:
  std::vector<NodeId> nodes_, rows_;
};

}  // namespace cgcn
