// The split of an edge list: a table or an array of roles, or a list of nodes for each role.
#pragma once

#include <optional>
#include <vector>

#include "io/formats/text_files.h"
#include "io/node_index.h"
#include "io/text/split_table.h"

namespace cgcn {

class TextSplit {
 public:
  // columns: of the table, if the split is one. staging: for what is unpacked. All outlive it.
  TextSplit(const TextFiles& files, const ImportOptions& options, const std::optional<SplitColumns>& columns,
            fs::path staging, NodeIndex& index, ImportReport& report)
      : files_(files),
        options_(options),
        columns_(columns),
        staging_(std::move(staging)),
        index_(index),
        report_(report) {}

  std::vector<uint8_t> read(NodeId n);  // a role for each node; empty: there are no files of a split

 private:
  void tell(const fs::path& file, const std::string& what) { files_.tell(file, options_.split_file, what, report_); }
  void read_role(const fs::path& list, Role role, std::vector<uint8_t>& split);
  void read_role_array(const fs::path& file, Role role, std::vector<uint8_t>& split);
  std::string_view listed_id(std::string_view line, FieldSplitter& splitter, const LineReader& lines) const;
  std::string rows_of_array(const fs::path& file, const std::string& hint = {}) const;

  const TextFiles& files_;
  const ImportOptions& options_;
  const std::optional<SplitColumns>& columns_;
  fs::path staging_;
  NodeIndex& index_;
  ImportReport& report_;
};

}  // namespace cgcn
