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

void NormalisedRows::fill(size_t begin, size_t end, SparseRows& rows) const {
  rows.offsets.assign(1, 0);
  rows.columns.clear();
  rows.values.clear();
  for (size_t v = begin; v < end; ++v) {
    for_each(static_cast<NodeId>(v), [&](NodeId u, float value) {
      rows.columns.push_back(u);
      rows.values.push_back(value);
    });
    rows.offsets.push_back(rows.columns.size());
  }
  rows.view = {static_cast<uint32_t>(end - begin), graph_.num_nodes(), rows.offsets.data(), rows.columns.data(),
               rows.values.data()};
}

}  // namespace cgcn
