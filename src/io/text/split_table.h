// A split as a table of text: a role per node, by id or row after row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/text/node_column.h"

namespace cgcn {

// train, val, test and their usual other names, 0, 1, 2; nothing (empty, none, NA, 255, -1). In any case.
std::optional<Role> parse_role(std::string_view text);
bool is_role_name(std::string_view text);  // such a word, no number

// Which columns hold what.
struct SplitColumns {
  TableHead head;
  NodeColumn ids;
  size_t role = 0;

  std::string describe() const;
};
SplitColumns choose_split_columns(const fs::path& path, const ImportOptions& options, EdgeIds& edges);
// The roles of all nodes.
std::vector<uint8_t> read_split_table(const SplitColumns& columns, NodeIndex& index);
// The same of a graph whose nodes are numbered 0 … n-1, from text or an array. counted_in: what gave n.
std::vector<uint8_t> read_split_file(const fs::path& path, const ImportOptions& options, NodeId num_nodes,
                                     const fs::path& counted_in, const fs::path& scratch, ImportReport& report);

}  // namespace cgcn
