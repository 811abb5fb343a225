// An edge list as text: one edge per line, two columns of node ids and perhaps one of weights, in CSV, TSV or with
// blanks.
#pragma once

#include "graph/graph_builder.h"
#include "io/node_index.h"
#include "io/reader.h"
#include "io/text/fields.h"

namespace cgcn {

// Which column holds what, from the first lines.
struct EdgeTableShape {
  static constexpr size_t kNone = SIZE_MAX;
  bool header = false;
  size_t from = 0, to = 1, weight = kNone;
  size_t columns = 2;
  std::string from_name, to_name, weight_name;  // as the header has them; empty without one
  std::string ignored;                          // columns that are not read, as the header names them: "time, comment"
  // The first line, if how it was read is a guess: text, but no known names of columns.
  std::string doubtful;
  std::pair<std::string, std::string> first_ids;  // of that line, read as an edge
};
// Without --header, the first line is a header if it has known names, or text in a column of ids or weights that
// else has numbers. In an edge list of texts alone this cannot be told from the file's first lines (doubtful).
EdgeTableShape look_at_edges(const fs::path& path, HeaderLine header = HeaderLine::kAuto);
// How the first line of a doubtful edge list compares with the others. A header's words are no ids: they occur nowhere
// else, and hardly any edge of a graph is like that.
enum class FirstEdge { kLikeOthers, kAlone, kOnlyOneAlone };  // alone: neither of its ids occurs again
FirstEdge look_at_first_edge(const fs::path& path, const EdgeTableShape& shape);

// The ids that an edge list has, closed.
NodeIndex read_edge_ids(const fs::path& path, const EdgeTableShape& shape);

// What the columns were taken for: "edges from column 'source' to 'target'; not read: time".
std::string describe_columns(const EdgeTableShape& shape);

// Reads every edge, in provisional numbers of the index. Throws NodeIndex::NotFast as the index does.
EdgeList read_edge_table(const fs::path& path, const EdgeTableShape& shape, NodeIndex& index,
                         const EdgeLimit& limit = {});

}  // namespace cgcn
