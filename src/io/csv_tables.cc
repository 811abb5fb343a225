#include "io/csv_tables.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "io/import_steps.h"

namespace cgcn {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), lower_case(name)) != known.end();
}
bool names_a_label_column(std::string_view name) {
  return is_one_of(name, {"label", "labels", "class", "classes", "y", "target", "category", "type"});
}
bool is_number(std::string_view text) { return parse_number(text).has_value(); }

using Fields = std::vector<std::string>;

// The fields of the first lines that say something. Error where there is none at all.
std::vector<Fields> first_lines(const fs::path& path, size_t count) {
  LineReader lines(path);
  std::string_view line;
  std::vector<Fields> result;
  if (!lines.next_content(line)) throw Error("is empty", path.string());
  FieldSplitter splitter(line);
  do {
    const auto& split = splitter.split(line, lines);
    result.emplace_back(split.begin(), split.end());
  } while (result.size() < count && lines.next_content(line));
  return result;
}

// Whether a table of two columns below a header of unknown names holds (id, class) pairs: some value is no 0 or 1.
bool looks_like_pairs(const std::vector<Fields>& lines) {
  for (size_t i = 1; i < lines.size(); ++i)
    for (const std::string& field : lines[i])
      if (field != "0" && field != "1") return true;
  return false;
}

// A column that is no number in the first line but is one in the second has a heading.
bool has_heading_over_numbers(const Fields& first, const Fields& second) {
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i)
    if (!is_number(first[i]) && !means_no_number(first[i]) && is_number(second[i])) return true;
  return false;
}

TableShape finish_shape(const fs::path& path, bool header, bool ids, Fields first) {
  TableShape shape{.header = header, .ids = ids, .columns = first.size() - (ids ? 1 : 0), .names = {}};
  if (shape.columns == 0) throw Error("has node ids but no other column", path.string());
  if (header) shape.names.assign(first.begin() + (ids ? 1 : 0), first.end());
  for (const std::string& name : shape.names)
    if (!simdjson::validate_utf8(name)) throw Error("is not UTF-8 text", path.string(), "save it as UTF-8");
  return shape;
}

// Calls use(fields) for each row of the table, its header passed over, its width checked.
template <class Use>
void for_each_row(LineReader& lines, const TableShape& shape, Use&& use) {
  std::string_view line;
  if (!lines.next_content(line)) return;
  FieldSplitter splitter(line);
  if (shape.header && !lines.next_content(line)) return;
  const size_t expected = shape.columns + (shape.ids ? 1 : 0);
  do {
    const auto& fields = splitter.split(line, lines);
    if (fields.size() != expected) lines.fail(fmt::format("{} columns where {} are expected", fields.size(), expected));
    use(fields);
  } while (lines.next_content(line));
}

// The node that a row is about: the one its first field names, or the row itself.
NodeId row_node(const LineReader& lines, const TableShape& shape, const std::vector<std::string_view>& fields,
                NodeIndex* index, uint64_t row) {
  if (shape.ids) return index->put(fields[0], lines);
  if (row >= kNoNode - 1) lines.fail("more rows than a graph can have nodes");
  return static_cast<NodeId>(row);
}

}  // namespace

bool names_a_node_column(std::string_view name) {
  return is_one_of(name, {"", "id", "ids", "node", "nodes", "node_id", "nodeid", "name", "index", "idx", "vertex"});
}

TableShape look_at_features(const fs::path& path) {
  Fields first = first_lines(path, 1)[0];
  const auto numbers = static_cast<size_t>(std::count_if(first.begin(), first.end(), is_number));
  const bool only_first_is_text = first.size() > 1 && numbers + 1 == first.size() && !is_number(first[0]);
  const bool header = numbers < first.size() && !only_first_is_text;
  const bool ids = header ? first.size() > 1 && names_a_node_column(first[0]) : only_first_is_text;
  return finish_shape(path, header, ids, std::move(first));
}

TableShape look_at_labels(const fs::path& path) {
  constexpr size_t kLinesLookedAt = 1000;
  const std::vector<Fields> lines = first_lines(path, kLinesLookedAt);
  Fields first = lines[0];
  const bool named =
      first.size() <= 2 && (names_a_label_column(first.back()) || (first.size() == 2 && names_a_node_column(first[0])));
  const bool wide_text = first.size() > 2 && !is_number(first.back());
  const bool header = named || wide_text || has_heading_over_numbers(first, lines.size() > 1 ? lines[1] : Fields());
  bool ids = false;
  if (first.size() > 1 && header)
    ids = names_a_node_column(first[0]) || (first.size() == 2 && looks_like_pairs(lines));
  else if (first.size() > 1)
    ids = first.size() == 2 || !is_number(first[0]);
  return finish_shape(path, header, ids, std::move(first));
}

NodeId import_feature_table(const fs::path& path, const TableShape& shape, NodeIndex* index, StoreWriter& store) {
  LineReader lines(path);
  ArrayWriter writer = store.begin_array<float>("features", shape.columns);
  std::vector<float> row(shape.columns);
  uint64_t rows = 0;
  const size_t skipped = shape.ids ? 1 : 0;
  for_each_row(lines, shape, [&](const auto& fields) {
    if (row_node(lines, shape, fields, index, rows) != rows)
      lines.fail(fmt::format("node {} is listed twice", show(fields[0])));
    for (size_t i = 0; i < row.size(); ++i) row[i] = parse_finite(fields[i + skipped], lines, "a feature");
    writer.append(std::span<const float>(row));
    ++rows;
  });
  if (rows == 0) throw Error("has no rows", path.string());
  store.end_array("features", writer);
  store.declare_features(FeatureMatrix::Kind::kDense32, static_cast<uint32_t>(shape.columns));
  return static_cast<NodeId>(rows);
}

LabelTable::LabelTable(const fs::path& path, const TableShape& shape, NodeIndex* index) : path_(path), shape_(shape) {
  LineReader lines(path);
  const size_t skipped = shape.ids ? 1 : 0;
  const size_t row_bytes = Labels::row_bytes(static_cast<uint32_t>(shape.columns));
  std::vector<bool> seen;
  for_each_row(lines, shape, [&](const auto& fields) {
    if (rows_ == 0) first_id_ = fields[0];
    const NodeId node = row_node(lines, shape, fields, index, rows_++);
    if (node >= seen.size()) seen.resize(std::max<size_t>(size_t{node} + 1, 2 * seen.size()));
    if (seen[node]) lines.fail(fmt::format("node {} is listed twice", show(fields[0])));
    seen[node] = true;
    if (shape.columns == 1) return classes_.add(node, fields[skipped]);
    nodes_.push_back(node);
    bits_.resize(bits_.size() + row_bytes);
    uint8_t* bits = &bits_[bits_.size() - row_bytes];
    for (size_t c = 0; c < shape.columns; ++c) {
      const std::optional<double> value = parse_number(fields[c + skipped]);
      if (value == 1)
        bits[c / 8] = static_cast<uint8_t>(bits[c / 8] | 1u << (c % 8));
      else if (value != 0)
        lines.fail(fmt::format("column {} holds {}, but a label is 0 or 1", c + skipped + 1, show(fields[c + skipped])),
                   "for (id, class) pairs name the first column 'id'");
    }
  });
  if (rows_ == 0) throw Error("has no rows", path.string());
}

std::vector<NodeId> LabelTable::nodes(const NodeIndex& index) const {
  std::vector<NodeId> nodes = shape_.columns == 1 ? classes_.nodes() : nodes_;
  for (NodeId& node : nodes) node = index.final(node);
  return nodes;
}

ClassTable::Result LabelTable::settle(NodeId num_nodes, const NodeIndex& index) const {
  if (!shape_.ids && rows_ != num_nodes)
    throw Error(fmt::format("holds labels of {} nodes, but the graph has {}", rows_, num_nodes), path_.string());
  const auto final = [&](NodeId node) { return shape_.ids ? index.final(node) : node; };
  if (shape_.columns == 1) return classes_.settle(num_nodes, path_.string(), final);
  const auto num_classes = check_class_count(static_cast<int64_t>(shape_.columns) - 1, path_.string());
  const size_t row_bytes = Labels::row_bytes(num_classes);
  Buffer<uint8_t> bits(size_t{num_nodes} * row_bytes, 0);
  for (size_t row = 0; row < nodes_.size(); ++row)
    std::copy_n(bits_.begin() + static_cast<std::ptrdiff_t>(row * row_bytes), row_bytes,
                bits.begin() + final(nodes_[row]) * row_bytes);
  return {Labels::multi(std::move(bits), num_classes), shape_.names};
}

}  // namespace cgcn
