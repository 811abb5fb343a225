#include "graph/ordered_rows.h"

#include "common/error.h"
#include "common/interrupt.h"
#include "common/threads.h"

namespace cgcn {

uint64_t OrderedRows::bytes(const CsrGraph& graph, const Normalisation& normalisation) {
  const uint64_t nodes = graph.num_nodes(), entries = graph.num_entries() + (normalisation.has_diagonal() ? nodes : 0);
  return (nodes + 1) * sizeof(uint64_t) + entries * sizeof(uint32_t) +
         (graph.weighted() ? entries : 2 * nodes) * sizeof(float);
}

// Edges are read in the order of their nodes and given back: those of a mapped graph are never all in memory twice.
OrderedRows::OrderedRows(const NormalisedRows& rows, std::span<const NodeId> place)
    : normalisation_(rows.normalisation()), offsets_(place.size() + 1) {
  const CsrGraph& graph = rows.graph();
  const size_t n = graph.num_nodes();
  CGCN_CHECK(place.size() == n);
  const bool weighted = graph.weighted();
  constexpr size_t kBlock = 1024;
  if (!weighted) scales_ = Buffer<float>(n), diagonal_ = Buffer<float>(n);
  offsets_[0] = 0;
  parallel_blocks(n, kBlock, [&](size_t begin, size_t end) {
    throw_if_interrupted();
    for (size_t v = begin; v < end; ++v) {
      const auto node = static_cast<NodeId>(v);
      uint64_t length = rows.has_diagonal() ? 0 : graph.degree(node);
      if (rows.has_diagonal()) rows.for_each(node, [&](NodeId, float) { ++length; });
      offsets_[size_t{place[v]} + 1] = length;
      if (!weighted) scales_[place[v]] = rows.scale(node);
    }
    graph.release_rows(begin, end);
  });
  for (size_t r = 0; r < n; ++r) offsets_[r + 1] += offsets_[r];
  columns_ = Buffer<uint32_t>(offsets_[n]);
  if (weighted) values_ = Buffer<float>(offsets_[n]);
  parallel_blocks(n, kBlock, [&](size_t begin, size_t end) {
    throw_if_interrupted();
    for (size_t v = begin; v < end; ++v) {
      uint64_t at = offsets_[place[v]];
      rows.for_each(static_cast<NodeId>(v), [&](NodeId u, float value) {
        if (weighted) values_[at] = value;
        if (!weighted && u == v) diagonal_[place[v]] = value;
        columns_[at++] = place[u];
      });
    }
    graph.release_rows(begin, end);
  });
}

void OrderedRows::fill(size_t begin, size_t end, NormalisedRows::SparseRows& rows) const {
  const uint64_t first = offsets_[begin], entries = offsets_[end] - first;
  rows.offsets.resize(end - begin + 1);
  for (size_t r = begin; r <= end; ++r) rows.offsets[r - begin] = offsets_[r] - first;
  const float* values = values_.data() + first;
  if (values_.size() == 0) {
    rows.values.resize(entries);
    for (size_t r = begin; r < end; ++r)
      for (uint64_t e = offsets_[r]; e < offsets_[r + 1]; ++e) rows.values[e - first] = value(r, columns_[e]);
    values = rows.values.data();
  }
  rows.view = {static_cast<uint32_t>(end - begin), static_cast<uint32_t>(offsets_.size() - 1), rows.offsets.data(),
               columns_.data() + first, values};
}

}  // namespace cgcn
