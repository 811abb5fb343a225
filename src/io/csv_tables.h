// Tables of text about nodes: features (numbers) and labels (a class, or a column of 0/1 for each class).
//
// A table may begin with a header line. Its first column may name the nodes: where the header calls it id, node, name …
// (or leaves it empty, as pandas does), and, without a header, where it is not a number. A label table of two columns
// without a header is (id, class) pairs. Otherwise row i is node i.
#pragma once

#include <string>
#include <vector>

#include "graph/store.h"
#include "io/class_table.h"
#include "io/fields.h"
#include "io/node_index.h"

namespace cgcn {

// The shape of a table, from its first two lines.
struct TableShape {
  bool header = false, ids = false;
  size_t columns = 0;              // the ids not counted
  std::vector<std::string> names;  // of those columns, from the header; empty where there is none
};
TableShape look_at_features(const fs::path& path);
TableShape look_at_labels(const fs::path& path);
bool names_a_node_column(std::string_view name);  // "id", "node_id" …

// Streams features into the store and returns the number of rows. `index` gets the ids where the shape has them.
NodeId import_feature_table(const fs::path& path, const TableShape& shape, NodeIndex* index, StoreWriter& store);

// A label table that has been read; nodes are provisional numbers of the index, or rows.
class LabelTable {
 public:
  LabelTable(const fs::path& path, const TableShape& shape, NodeIndex* index);
  uint64_t rows() const { return rows_; }
  // With ids: the nodes that the table names, in final numbers, and the first of them as the file has it.
  std::vector<NodeId> nodes(const NodeIndex& index) const;
  const std::string& first_id() const { return first_id_; }
  // Whether the first line may be a header that was read as (id, class): no other line has its class.
  bool first_line_is_doubtful() const {
    return !shape_.header && shape_.columns == 1 && rows_ > 2 && classes_.first_class_is_unique();
  }
  // The labels, in final numbers, and class names where there are such. Nodes that were not listed have none.
  ClassTable::Result settle(NodeId num_nodes, const NodeIndex& index) const;

 private:
  fs::path path_;
  TableShape shape_;
  uint64_t rows_ = 0;
  std::string first_id_;
  ClassTable classes_;         // one column
  std::vector<NodeId> nodes_;  // several: which node each row is for,
  std::vector<uint8_t> bits_;  // and its packed bits
};

}  // namespace cgcn
