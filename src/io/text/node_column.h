// Which column of a table names the nodes: decided in one place for features, labels and splits alike, and said.
//
// In this order: what --id-column says; a column whose name says so (id, node, user_id, userId, a column of the edge
// list …), if its values are ids of the edges; any column whose values are exactly the ids of the edges, each once.
// Otherwise row i is node i. If several columns could be meant, or one that looks like ids has others than the
// edges, that is an Error that says how to choose.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/node_index.h"
#include "io/text/table_head.h"

namespace cgcn {

bool is_node_name(std::string_view name);     // "id", "node", "name" …
bool is_unmistakable(std::string_view name);  // of these, those that nothing else is called
bool ends_in_id(std::string_view name);       // "user_id", "userId", "uid"
bool names_a_class(std::string_view name);    // "label", "class", "y" …

struct NodeColumn {
  static constexpr size_t kNone = SIZE_MAX;
  size_t column = kNone;
  std::string sentence = "row i is node i";  // the decision, for the report: "column 'user_id' names the nodes"

  bool exists() const { return column != kNone; }
};

// What the edge list says about ids. Reading it takes time, so that is done only if it decides something.
class EdgeIds {
 public:
  EdgeIds(std::string file, std::vector<std::string> column_names, std::function<NodeIndex()> read)
      : file_(std::move(file)), column_names_(std::move(column_names)), read_(std::move(read)) {}
  const NodeIndex& get() {
    if (!ids_) ids_ = read_();
    return *ids_;
  }
  const std::string& file() const { return file_; }
  bool has_column(std::string_view name) const;  // whether its header has this name
  bool option_used = false;                      // whether some table has the column that --id-column names

 private:
  std::string file_;
  std::vector<std::string> column_names_;
  std::function<NodeIndex()> read_;
  std::optional<NodeIndex> ids_;
};

// Whether the first line of a table that seems to have no header is one nevertheless: a column holds ids of the edges
// everywhere but there, and no word of it occurs again in its column.
bool is_header_by_ids(const TableHead& head, EdgeIds& edges);

// id_column: as the user gave it: names separated by commas, each for the tables that have it; "none": no column.
// fallback: the column to take if nothing else speaks for one, as with (id, class) pairs.
NodeColumn choose_node_column(const TableHead& head, const std::string& id_column, EdgeIds& edges,
                              size_t fallback = NodeColumn::kNone);

// The node that a row is about: the one that its id column names, or the row itself. kNoNode: an id that the index does
// not know, which it has noted.
inline NodeId row_node(const LineReader& lines, const NodeColumn& ids, const std::vector<std::string_view>& fields,
                       NodeIndex* index, uint64_t row) {
  if (ids.exists()) return index->put(fields[ids.column], lines);
  if (row >= kNoNode - 1) lines.fail("more rows than a graph can have nodes");
  return static_cast<NodeId>(row);
}

}  // namespace cgcn
