#include "graph/normalised_rows.h"

#include "common/threads.h"

namespace cgcn {

NormalisedRows::NormalisedRows(const CsrGraph& graph, const Normalisation& normalisation)
    : graph_(graph), normalisation_(normalisation), scales_(graph.num_nodes()) {
  constexpr size_t kBlock = 4096;
  parallel_blocks(graph.num_nodes(), kBlock, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v)
      scales_[v] = normalisation_.scale(weighted_degree(graph_, static_cast<NodeId>(v)));
  });
}

template <class NodeAt>
void NormalisedRows::fill_rows(size_t count, NodeAt&& node_at, SparseRows& rows) const {
  rows.offsets.assign(1, 0);
  rows.columns.clear();
  rows.values.clear();
  for (size_t r = 0; r < count; ++r) {
    for_each(node_at(r), [&](NodeId u, float value) {
      rows.columns.push_back(u);
      rows.values.push_back(value);
    });
    rows.offsets.push_back(rows.columns.size());
  }
  rows.view = {static_cast<uint32_t>(count), graph_.num_nodes(), rows.offsets.data(), rows.columns.data(),
               rows.values.data()};
}

void NormalisedRows::fill(size_t begin, size_t end, SparseRows& rows) const {
  fill_rows(
      end - begin, [&](size_t r) { return static_cast<NodeId>(begin + r); }, rows);
}

// Nodes in any order lie anywhere: their offsets, and then their edges, are asked for before they are needed.
void NormalisedRows::fill(std::span<const NodeId> nodes, SparseRows& rows) const {
  constexpr size_t kAhead = 8, kLine = 64 / sizeof(NodeId);
  const std::span<const EdgeOffset> offsets = graph_.offsets();
  const std::span<const NodeId> targets = graph_.targets();
  const auto node_at = [&](size_t r) {
    if (r + 2 * kAhead < nodes.size()) __builtin_prefetch(&offsets[nodes[r + 2 * kAhead]]);
    if (r + kAhead < nodes.size()) {
      const NodeId next = nodes[r + kAhead];
      for (EdgeOffset e = offsets[next]; e < offsets[size_t{next} + 1]; e += kLine) __builtin_prefetch(&targets[e]);
    }
    return nodes[r];
  };
  fill_rows(nodes.size(), node_at, rows);
}

}  // namespace cgcn
