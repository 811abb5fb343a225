#include "io/formats/text_split.h"

#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/numpy/npz.h"
#include "io/text/node_column.h"

namespace cgcn {

std::vector<uint8_t> TextSplit::read(NodeId n) {
  if (holds_arrays(files_.split)) {
    tell(files_.split, "an array of roles, " + rows_of_array(files_.split));
    return read_split(open_array(files_.split, staging_), n);
  }
  if (columns_) {
    tell(files_.split, columns_->describe());
    return read_split_table(*columns_, index_);
  }
  if (files_.role_lists[0].empty()) return {};
  std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
  for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest}) {
    const fs::path& list = files_.role_lists[static_cast<size_t>(role)];
    if (list.empty()) continue;
    if (holds_arrays(list))
      read_role_array(list, role, split);
    else
      read_role(list, role, split);
  }
  return split;
}

void TextSplit::read_role(const fs::path& list, Role role, std::vector<uint8_t>& split) {
  LineReader lines(list);
  std::string_view line;
  while (lines.next_content(line)) {
    if (lines.line_number() == 1 && (is_node_name(line) || ends_in_id(line))) continue;
    FieldSplitter splitter(line);
    const NodeId node = index_.put(listed_id(line, splitter, lines), lines);
    if (node != kNoNode) assign_role(index_.final(node), role, lines.where(), split);
  }
  index_.refuse_unknown(list);
  tell(list, "a list of node ids");
}

// A line of a list is one id, whatever is in it; or the first field of a table of commas, semicolons or tabs.
std::string_view TextSplit::listed_id(std::string_view line, FieldSplitter& splitter, const LineReader& lines) const {
  const bool is_table = splitter.separator() != ' ' || line.starts_with('"');
  return index_.knows(line) || !is_table ? line : splitter.split(line, lines)[0];
}

void TextSplit::read_role_array(const fs::path& file, Role role, std::vector<uint8_t>& split) {
  const Array array = open_array(file, staging_);
  const bool mask = is_mask(array, file, static_cast<NodeId>(split.size()));
  if (!mask && index_.has_names())
    throw Error("holds row numbers, but the nodes have ids of their own", file.string(),
                fmt::format("give it as {}.txt, one id per line", file.stem().string()));
  tell(file,
       (mask ? "a mask, " : "a list of nodes, ") + rows_of_array(file, "give the split as train.txt, one id per line"));
  if (mask)
    assign_role_by_mask(array, role, split);
  else
    assign_role(array, role, split);
}

// Which node a row of an array is. Error where only the order in which edges name the nodes could tell.
std::string TextSplit::rows_of_array(const fs::path& file, const std::string& hint) const {
  if (!index_.has_names()) return "row i is node i";
  if (files_.has_feature_table()) return fmt::format("row i is row i of {}", files_.features.filename().string());
  if (!index_.has_texts()) return "row i is the node with the i-th smallest id";
  throw Error(fmt::format("has rows, but only {} says which nodes there are", files_.edges.filename().string()),
              file.string(),
              hint.empty() ? fmt::format("give it as {}.csv, with a column of ids", file.stem().string()) : hint);
}

}  // namespace cgcn
