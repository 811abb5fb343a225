#include "graph/csr_graph.h"

#include <algorithm>

namespace cgcn {

uint64_t CsrGraph::count_self_loops() const {
  uint64_t loops = 0;
  for (NodeId v = 0; v < num_nodes(); ++v) {
    const auto row = neighbours(v);
    loops += std::binary_search(row.begin(), row.end(), v) ? 1 : 0;
  }
  return loops;
}

uint64_t CsrGraph::num_edges() const {
  if (directed_) return num_entries();
  const uint64_t loops = count_self_loops();
  return (num_entries() - loops) / 2 + loops;
}

}  // namespace cgcn
