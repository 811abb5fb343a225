// A table of labels as text: a class per node, or a column of 0/1 for each class.
#pragma once

#include <string>
#include <vector>

#include "io/text/class_table.h"
#include "io/text/node_column.h"

namespace cgcn {

// Which columns hold what.
struct LabelColumns {
  NodeColumn ids;
  std::vector<size_t> classes;   // one: the class; several: 0/1 each
  std::vector<size_t> left_out;  // not read

  std::string describe(const TableHead& head) const;
};
// label_column: as the user named it; empty: by name, or all that hold 0/1. known: class names of an earlier store, in
// whose order 0/1 columns are taken.
LabelColumns choose_label_columns(const TableHead& head, const std::string& id_column, const std::string& label_column,
                                  EdgeIds& edges);

// A label table that has been read; nodes are provisional numbers of the index, or rows.
class LabelTable {
 public:
  LabelTable(const TableHead& head, const LabelColumns& columns, NodeIndex* index);
  uint64_t rows() const { return rows_; }
  bool has_ids() const { return columns_.ids.exists(); }
  // With ids: the nodes that the table names, in final numbers, and the first of them as the file has it.
  std::vector<NodeId> nodes(const NodeIndex& index) const;
  const std::string& first_id() const { return first_id_; }
  // Whether the first line may be a header that was read as (id, class): no other line has its class.
  bool first_line_is_doubtful() const {
    return !head_.header && columns_.classes.size() == 1 && rows_ > 2 && classes_.first_class_is_unique();
  }
  // The labels, in final numbers, and class names if there are such. Nodes that were not listed have none.
  // known: of an earlier store, whose numbers classes get; null: none. lists: a column of classes holds lists of them.
  ClassTable::Result settle(NodeId num_nodes, const NodeIndex& index, const KnownClasses* known = nullptr,
                            bool lists = false) const;
  // Numbers to predict; NaN for nodes that have none. Error if the table has several columns, or what is no number.
  ClassTable::Result settle_numbers(NodeId num_nodes, const NodeIndex& index) const;

 private:
  void require_all_rows(NodeId num_nodes) const;
  void read_bits(const std::vector<std::string_view>& fields, const LineReader& lines);

  TableHead head_;
  LabelColumns columns_;
  uint64_t rows_ = 0;
  std::string first_id_;
  ClassTable classes_;         // one column
  std::vector<NodeId> nodes_;  // several: which node each row is for,
  std::vector<uint8_t> bits_;  // and its packed bits
};

}  // namespace cgcn
