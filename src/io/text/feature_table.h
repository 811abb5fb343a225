// A table of features as text: numbers, missing values, texts; each column encoded as the options say, or as an earlier
// store did it.
//
// A table of plain numbers is streamed into the store in one pass. If values are missing or columns hold text, the
// table is read three times: to see what is in each column, to fit means and categories on the training nodes, and to
// write. That waits until the split is known.
#pragma once

#include <optional>

#include "graph/store.h"
#include "io/reader.h"
#include "io/text/node_column.h"

namespace cgcn {

class FeatureTable {
 public:
  // answers: columns that are read as labels or as the split, which are no features. like: how an earlier store encoded
  // its table, with the store's name for messages; empty: as the options say.
  FeatureTable(TableHead head, NodeColumn ids, const ImportOptions& options, std::vector<size_t> answers = {},
               std::vector<ColumnEncoding> like = {});

  const fs::path& path() const { return head_.path; }
  bool has_ids() const { return ids_.exists(); }
  // Reads the ids into the index, and writes the features if they need no fitting. Returns the number of rows.
  NodeId read(NodeIndex* index, StoreWriter& store);
  // Fits and writes what read() left, and tells it. roles: of all nodes, row after row; empty if there is no split.
  void finish(std::span<const uint8_t> roles, StoreWriter& store, ImportReport& report);
  // Which column is what: "column 'id' names the nodes; 3 features: 'a', 'b', 'c'; left out: 'time'; left out as label
  // or split: 'kind'".
  std::string describe() const;

 private:
  // One column that is read, and what is in it.
  struct Column {
    size_t source = 0;
    ColumnEncoding encoding;
    uint64_t numbers = 0, missing = 0, texts = 0;
    uint64_t dates = 0, foreign_numbers = 0;     // of the texts
    uint64_t first_missing = 0, first_text = 0;  // their lines
    std::string example, foreign_example;        // the first of them
    uint64_t unseen = 0;                         // texts that are no category
    std::string rounded;                         // the first whole number that float32 does not have
  };
  void choose_columns();
  void choose_columns_like(const std::vector<ColumnEncoding>& like);
  std::optional<NodeId> read_numbers(NodeIndex* index, StoreWriter& store);
  NodeId scan(NodeIndex* index);
  void settle_kinds();
  void fit(std::span<const uint8_t> roles);
  void write(StoreWriter& store);
  void encode(std::string_view text, Column& column, float* out) const;
  void tell(ImportReport& report) const;
  bool needs_fit() const;
  std::string show_column(const Column& column) const { return "column " + head_.show_column(column.source); }

  TableHead head_;
  NodeColumn ids_;
  const ImportOptions& options_;
  std::vector<Column> columns_;
  std::vector<size_t> left_out_, answers_;
  bool fitted_ = false;   // by an earlier store
  bool written_ = false;  // by read()
};

}  // namespace cgcn
