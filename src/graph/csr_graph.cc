#include "graph/csr_graph.h"

#include <algorithm>

#include "graph/row_blocks.h"

namespace cgcn {

uint64_t CsrGraph::count_self_loops() const {
  uint64_t loops = 0;
  const RowBlocks blocks(offsets());
  for (size_t i = 0; i < blocks.count(); ++i) {
    for (size_t v = blocks.begin(i); v < blocks.end(i); ++v) {
      const auto row = neighbours(static_cast<NodeId>(v));
      loops += std::binary_search(row.begin(), row.end(), v) ? 1 : 0;
    }
    release_rows(blocks.begin(i), blocks.end(i));
  }
  return loops;
}

uint64_t CsrGraph::num_edges() const {
  if (directed_) return num_entries();
  const uint64_t loops = count_self_loops();
  return (num_entries() - loops) / 2 + loops;
}

}  // namespace cgcn
