// An edge list as text: a line an edge, two columns of node ids and perhaps one of weights, in CSV, TSV or with blanks.
#pragma once

#include "graph/graph_builder.h"
#include "io/fields.h"
#include "io/node_index.h"

namespace cgcn {

// Which column holds what, from the first two lines.
struct EdgeTableShape {
  static constexpr size_t kNone = SIZE_MAX;
  bool header = false;
  size_t from = 0, to = 1, weight = kNone;
  size_t columns = 2;
  std::string ignored;  // columns that are not read, as the header names them: "time, comment"
};
EdgeTableShape look_at_edges(const fs::path& path);

// Reads every edge, in provisional numbers of the index. Throws NodeIndex::NotFast as the index does.
EdgeList read_edge_table(const fs::path& path, const EdgeTableShape& shape, NodeIndex& index);

}  // namespace cgcn
