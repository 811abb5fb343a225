// An edge list as text: a line an edge, two columns of node ids and perhaps one of weights, in CSV, TSV or with blanks.
#pragma once

#include "graph/graph_builder.h"
#include "io/fields.h"
#include "io/node_index.h"
#include "io/reader.h"

namespace cgcn {

// Which column holds what, from the first lines.
struct EdgeTableShape {
  static constexpr size_t kNone = SIZE_MAX;
  bool header = false;
  size_t from = 0, to = 1, weight = kNone;
  size_t columns = 2;
  std::string from_name, to_name, weight_name;  // as the header has them; empty without one
  std::string ignored;                          // columns that are not read, as the header names them: "time, comment"
  // The first line, where how it was read is a guess: text, but no known names of columns.
  std::string doubtful;
};
// Without --header, the first line is a header where it has known names, or text in a column that else has whole
// numbers.
EdgeTableShape look_at_edges(const fs::path& path, HeaderLine header = HeaderLine::kAuto);
// Whether neither end of the first edge occurs again, as with a header line that was read as an edge.
bool first_edge_stands_alone(const EdgeList& edges);

// The ids that an edge list has, closed.
NodeIndex read_edge_ids(const fs::path& path, const EdgeTableShape& shape);

// What the columns were taken for: "edges from column 'source' to 'target'; not read: time".
std::string describe_columns(const EdgeTableShape& shape);

// Reads every edge, in provisional numbers of the index. Throws NodeIndex::NotFast as the index does.
EdgeList read_edge_table(const fs::path& path, const EdgeTableShape& shape, NodeIndex& index,
                         const EdgeLimit& limit = {});

}  // namespace cgcn
