#include "graph/normalised_rows.h"

#include "common/threads.h"
#include "graph/row_blocks.h"

namespace cgcn {

NormalisedRows::NormalisedRows(const CsrGraph& graph, const Normalisation& normalisation)
    : graph_(graph), normalisation_(normalisation), scales_(graph.num_nodes()) {
  const RowBlocks blocks(graph.offsets(), 4096);
  parallel_for_each_block(blocks.count(), BlockOrder::kAscending, [&](size_t i) {
    for (size_t v = blocks.begin(i); v < blocks.end(i); ++v)
      scales_[v] = normalisation_.scale(weighted_degree(graph_, static_cast<NodeId>(v)));
    if (graph_.weighted()) graph_.release_rows(blocks.begin(i), blocks.end(i));
  });
}

template <class NodeAt>
void NormalisedRows::fill_rows(size_t count, NodeAt&& node_at, SparseRows& rows) const {
  rows.offsets.assign(1, 0);
  rows.columns.clear();
  rows.values.clear();
  uint64_t entries = 0;  // a hub's row would be copied again and again as it grows
  for (size_t r = 0; r < count; ++r) entries += max_length(node_at(r));
  rows.columns.reserve(entries);
  rows.values.reserve(entries);
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
