#include "io/text/split_table.h"

#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/numpy/npz.h"
#include "io/text/class_table.h"

namespace cgcn {
namespace {

size_t find_role_column(const TableHead& head, const NodeColumn& ids) {
  std::vector<size_t> others;
  for (size_t c = 0; c < head.width; ++c)
    if (c != ids.column && !head.is_unnamed_index(c)) others.push_back(c);
  if (others.empty()) throw Error("has node ids but no other column", head.path.string());
  if (others.size() == 1) return others[0];
  for (const char* name : {"split", "role", "set", "part", "subset", "fold"})
    if (const size_t found = head.find(name); found != TableHead::kNone && found != ids.column) return found;
  throw Error(fmt::format("which column is the split? There are {}", head.show_columns(others)), head.path.string(),
              "call it 'split', in a header line");
}

}  // namespace

std::optional<Role> parse_role(std::string_view text) {
  if (means_no_number(text)) return Role::kNone;
  const std::string lower = lower_case(text);
  constexpr std::pair<const char*, Role> kKnown[] = {{"0", Role::kTrain},          {"train", Role::kTrain},
                                                     {"training", Role::kTrain},   {"tr", Role::kTrain},
                                                     {"1", Role::kValidation},     {"val", Role::kValidation},
                                                     {"valid", Role::kValidation}, {"validation", Role::kValidation},
                                                     {"va", Role::kValidation},    {"dev", Role::kValidation},
                                                     {"2", Role::kTest},           {"test", Role::kTest},
                                                     {"testing", Role::kTest},     {"te", Role::kTest},
                                                     {"unused", Role::kNone},      {"255", Role::kNone},
                                                     {"-1", Role::kNone}};
  for (const auto& [name, role] : kKnown)
    if (lower == name) return role;
  return std::nullopt;
}

bool is_role_name(std::string_view text) { return !text.empty() && parse_role(text) && !parse_number(text); }

SplitColumns choose_split_columns(const fs::path& path, const ImportOptions& options, EdgeIds& edges) {
  SplitColumns columns;
  const TableHead& head = columns.head = look_at_table(path, options.header, TableKind::kRoles);
  columns.ids =
      choose_node_column(head, options.id_column, edges, !head.header && head.width == 2 ? 0 : NodeColumn::kNone);
  columns.role = find_role_column(head, columns.ids);
  return columns;
}

std::string SplitColumns::describe() const {
  return ids.sentence + (head.width > 1 ? fmt::format("; column {} is the split", head.show_column(role)) : "");
}

std::vector<uint8_t> read_split_table(const SplitColumns& columns, NodeIndex& index) {
  const TableHead& head = columns.head;
  const NodeColumn& ids = columns.ids;
  const size_t column = columns.role;
  std::vector<uint8_t> split(index.size(), static_cast<uint8_t>(Role::kNone));
  std::vector<bool> seen(index.size(), false);
  LineReader lines(head.path);
  uint64_t rows = 0;
  for_each_row(lines, head, [&](const std::vector<std::string_view>& fields) {
    const std::optional<Role> role = parse_role(fields[column]);
    if (!role)
      lines.fail(fmt::format("{} is no part of a split", show(fields[column])),
                 "train, val or test (or 0, 1, 2); empty for none");
    const NodeId node = row_node(lines, ids, fields, &index, rows++);
    if (node == kNoNode || (!ids.exists() && rows > index.size())) return;
    const NodeId v = ids.exists() ? index.final(node) : node;
    if (seen[v]) lines.fail(fmt::format("node {} is listed twice", show(fields[ids.column])));
    seen[v] = true;
    split[v] = static_cast<uint8_t>(*role);
  });
  if (ids.exists()) index.refuse_unknown(head.path);
  if (!ids.exists() && rows != index.size())
    throw Error(fmt::format("holds roles of {} nodes, but the graph has {}", rows, index.size()), head.path.string(),
                "if it lists only some nodes: a column of ids, with the header 'id'");
  return split;
}

std::vector<uint8_t> read_split_file(const fs::path& path, const ImportOptions& options, NodeId num_nodes,
                                     const fs::path& counted_in, const fs::path& scratch, ImportReport& report) {
  if (holds_arrays(path)) {
    report.lines.push_back(path.filename().string() + ": an array of roles, row i is node i");
    return read_split(open_array(path, scratch), num_nodes);
  }
  const auto rows = [&] { return NodeIndex::rows(num_nodes, counted_in); };
  EdgeIds edges(counted_in.filename().string(), {}, rows);
  NodeIndex index = rows();
  const SplitColumns columns = choose_split_columns(path, options, edges);
  report.lines.push_back(fmt::format("{}: {}", path.filename().string(), columns.describe()));
  return read_split_table(columns, index);
}

}  // namespace cgcn
