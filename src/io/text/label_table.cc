#include "io/text/label_table.h"

#include <algorithm>

#include "io/formats/import_steps.h"

namespace cgcn {
namespace {

// 0 or 1, or what pandas writes for them: True, False.
std::optional<bool> parse_bit(std::string_view text) {
  if (const std::optional<double> value = parse_number(text))
    return *value == 0 || *value == 1 ? std::optional(*value == 1) : std::nullopt;
  const std::string lower = lower_case(text);
  return lower == "true" || lower == "false" ? std::optional(lower == "true") : std::nullopt;
}

bool holds_bits(const TableHead& head, size_t column) {
  return std::all_of(head.rows.begin(), head.rows.end(),
                     [&](const Fields& row) { return column < row.size() && parse_bit(row[column]); });
}

bool holds_words(const TableHead& head, size_t column) {  // True and False rather than 1 and 0
  return !head.rows.empty() && column < head.rows[0].size() && !parse_number(head.rows[0][column]);
}

// Which nodes are for training, validation and test, as PyTorch Geometric calls it: no class.
bool is_mask_name(const std::string& name) {
  const std::string lower = lower_case(name);
  return lower == "train_mask" || lower == "val_mask" || lower == "valid_mask" || lower == "validation_mask" ||
         lower == "test_mask";
}

// Names that mean the class and nothing else; y, target, type … may be one class of several.
bool is_class_name_for_sure(const std::string& name) {
  const std::string lower = lower_case(name);
  return lower == "label" || lower == "labels" || lower == "class" || lower == "classes";
}

// Of (id, class) pairs, which is the id if nothing else tells.
size_t id_of_pairs(const TableHead& head) {
  if (head.width != 2) return NodeColumn::kNone;
  if (!head.header) return 0;
  if (names_a_class(head.names[0]) && !names_a_class(head.names[1])) return 1;
  return holds_bits(head, 0) && holds_bits(head, 1) && !names_a_class(head.names[1]) ? NodeColumn::kNone : 0;
}

// The column that holds the class, if names tell it; kNone: all of them are 0/1.
size_t find_class_column(const TableHead& head, const std::vector<size_t>& others) {
  if (others.size() == 1) return others[0];
  const bool bits = std::all_of(others.begin(), others.end(), [&](size_t c) {
    return holds_bits(head, c) && holds_words(head, c) == holds_words(head, others[0]);
  });
  std::vector<size_t> sure, likely;
  for (const size_t c : others) {
    if (head.header && is_class_name_for_sure(head.names[c])) sure.push_back(c);
    if (head.header && names_a_class(head.names[c])) likely.push_back(c);
  }
  if (sure.size() == 1) return sure[0];
  if (!bits && likely.size() == 1) return likely[0];
  if (!bits && head.header)
    throw Error(fmt::format("which column is the class? There are {}", head.show_columns(others)), head.path.string(),
                "--label-column NAME");
  return TableHead::kNone;
}

}  // namespace

LabelColumns choose_label_columns(const TableHead& head, const std::string& id_column, const std::string& label_column,
                                  EdgeIds& edges) {
  LabelColumns columns;
  columns.ids = choose_node_column(head, id_column, edges, id_of_pairs(head));
  std::vector<size_t> others;
  for (size_t c = 0; c < head.width; ++c)
    if (c != columns.ids.column && !head.is_unnamed_index(c) && !(head.header && is_mask_name(head.names[c])))
      others.push_back(c);
  if (others.empty()) throw Error("has node ids but no other column", head.path.string());
  const size_t chosen =
      label_column.empty() ? find_class_column(head, others) : find_column(head, label_column, "--label-column");
  if (columns.ids.exists() && chosen == columns.ids.column)
    throw Error("names the column of ids", "--label-column", "another column");
  columns.classes = chosen == TableHead::kNone ? others : std::vector<size_t>{chosen};
  for (size_t c = 0; c < head.width; ++c)
    if (c != columns.ids.column &&
        std::find(columns.classes.begin(), columns.classes.end(), c) == columns.classes.end())
      columns.left_out.push_back(c);
  return columns;
}

std::string LabelColumns::describe(const TableHead& head) const {
  std::string text = ids.sentence;
  if (classes.size() == 1)
    text += head.width == 1 ? "" : fmt::format("; column {} is the class", head.show_column(classes[0]));
  else
    text += fmt::format("; {} columns of 0/1, one per class: {}", classes.size(), head.show_columns(classes));
  if (!left_out.empty()) text += "; left out: " + head.show_columns(left_out);
  return text;
}

LabelTable::LabelTable(const TableHead& head, const LabelColumns& columns, NodeIndex* index)
    : head_(head), columns_(columns) {
  LineReader lines(head.path);
  std::vector<bool> seen;
  for_each_row(lines, head, [&](const auto& fields) {
    if (rows_ == 0 && has_ids()) first_id_ = fields[columns_.ids.column];
    const NodeId node = row_node(lines, columns_.ids, fields, index, rows_++);
    if (node == kNoNode) return;  // refused below, with all others
    if (node >= seen.size()) seen.resize(std::max<size_t>(size_t{node} + 1, 2 * seen.size()));
    if (seen[node]) lines.fail(fmt::format("node {} is listed twice", show(fields[columns_.ids.column])));
    seen[node] = true;
    if (columns_.classes.size() == 1) return classes_.add(node, fields[columns_.classes[0]]);
    nodes_.push_back(node);
    read_bits(fields, lines);
  });
  if (has_ids()) index->refuse_unknown(head.path);
  if (rows_ == 0) throw Error("has no rows", head.path.string());
}

void LabelTable::read_bits(const std::vector<std::string_view>& fields, const LineReader& lines) {
  const size_t row_bytes = Labels::row_bytes(static_cast<uint32_t>(columns_.classes.size()));
  bits_.resize(bits_.size() + row_bytes);
  uint8_t* bits = &bits_[bits_.size() - row_bytes];
  for (size_t c = 0; c < columns_.classes.size(); ++c) {
    const size_t column = columns_.classes[c];
    const std::optional<bool> value = parse_bit(fields[column]);
    if (value == true)
      bits[c / 8] = static_cast<uint8_t>(bits[c / 8] | 1u << (c % 8));
    else if (!value)
      lines.fail(
          fmt::format("column {} holds {}, but a label is 0 or 1", head_.show_column(column), show(fields[column])),
          "if one column holds the class: --label-column NAME");
  }
}

std::vector<NodeId> LabelTable::nodes(const NodeIndex& index) const {
  std::vector<NodeId> nodes = columns_.classes.size() == 1 ? classes_.nodes() : nodes_;
  for (NodeId& node : nodes) node = index.final(node);
  return nodes;
}

void LabelTable::require_all_rows(NodeId num_nodes) const {
  if (!has_ids() && rows_ != num_nodes)
    throw Error(fmt::format("holds labels of {} nodes, but the graph has {}", rows_, num_nodes), head_.path.string(),
                rows_ == num_nodes + uint64_t{1} && !head_.header
                    ? "--labels-header yes, if the first line names the columns"
                    : "if it lists only some nodes: a column of ids, with the header 'id'");
}

ClassTable::Result LabelTable::settle_numbers(NodeId num_nodes, const NodeIndex& index) const {
  require_all_rows(num_nodes);
  if (columns_.classes.size() != 1)
    throw Error("regression predicts one number per node: which column holds it?", head_.path.string(),
                "--label-column NAME");
  const auto final = [&](NodeId node) { return has_ids() ? index.final(node) : node; };
  return {Labels::numbers(classes_.numbers(num_nodes, head_.path.string(), final)), {}};
}

ClassTable::Result LabelTable::settle(NodeId num_nodes, const NodeIndex& index, const KnownClasses* known,
                                      bool lists) const {
  const std::string where = head_.path.string();
  require_all_rows(num_nodes);
  const auto final = [&](NodeId node) { return has_ids() ? index.final(node) : node; };
  if (columns_.classes.size() == 1 && lists) return classes_.settle_lists(num_nodes, where, final, known);
  if (columns_.classes.size() == 1) return classes_.settle(num_nodes, where, final, known);
  const auto num_classes = check_class_count(static_cast<int64_t>(columns_.classes.size()) - 1, where);
  std::vector<std::string> names;
  for (const size_t c : columns_.classes)
    if (head_.header) names.push_back(head_.names[c]);
  if (known != nullptr && (num_classes != known->count || (!known->names.empty() && known->names != names)))
    throw Error(fmt::format("its columns of classes are not those of {}", known->store), where,
                "the same columns in the same order");
  const size_t row_bytes = Labels::row_bytes(num_classes);
  Buffer<uint8_t> bits(size_t{num_nodes} * row_bytes, 0);
  std::vector<bool> listed(num_nodes, false);
  for (size_t row = 0; row < nodes_.size(); ++row) {
    std::copy_n(bits_.begin() + static_cast<std::ptrdiff_t>(row * row_bytes), row_bytes,
                bits.begin() + final(nodes_[row]) * row_bytes);
    listed[final(nodes_[row])] = true;
  }
  if (std::find(listed.begin(), listed.end(), false) == listed.end()) listed.clear();
  return {Labels::multi(std::move(bits), num_classes), std::move(names), std::move(listed)};
}

}  // namespace cgcn
