#include "io/edge_table.h"

#include <simdjson.h>

#include <algorithm>

namespace cgcn {
namespace {

size_t find_name(const std::vector<std::string>& names, std::initializer_list<std::string_view> known) {
  for (size_t i = 0; i < names.size(); ++i)
    if (std::find(known.begin(), known.end(), names[i]) != known.end()) return i;
  return EdgeTableShape::kNone;
}

// Columns by their names, or false where the line is no header that is known.
bool read_header(const std::vector<std::string>& names, EdgeTableShape& shape) {
  const size_t from = find_name(names, {"source", "src", "from", "u", "node1", "node_1", "id1", "id_1", "start", "head",
                                        "citing", "source_id", "from_id", "fromnodeid"});
  const size_t to = find_name(names, {"target", "dst", "dest", "destination", "to", "v", "node2", "node_2", "id2",
                                      "id_2", "end", "tail", "cited", "target_id", "to_id", "tonodeid"});
  if (from == EdgeTableShape::kNone || to == EdgeTableShape::kNone) return false;
  shape.from = from;
  shape.to = to;
  shape.weight = find_name(names, {"weight", "weights", "w", "value"});
  for (size_t i = 0; i < names.size(); ++i)
    if (i != shape.from && i != shape.to && i != shape.weight)
      shape.ignored += (shape.ignored.empty() ? "" : ", ") + names[i];
  return true;
}

// Digits, one separator, digits, and nothing else: what nearly every line of a large file is.
bool read_two_integers(std::string_view line, char separator, uint64_t& from, uint64_t& to, size_t& first_length) {
  const char* at = line.data();
  const char* end = at + line.size();
  if (!read_digits(at, end, from)) return false;
  first_length = static_cast<size_t>(at - line.data());
  if (at == end || *at != separator) return false;
  ++at;
  return read_digits(at, end, to) && at == end;
}

float read_weight(std::string_view text, const LineReader& lines) {
  if (text == "{}") return 1;  // networkx writes an edge without attributes so
  const float weight = parse_finite(text, lines, "an edge weight");
  if (weight < 0) lines.fail(fmt::format("negative edge weight {}", show(text)));
  return weight;
}

}  // namespace

EdgeTableShape look_at_edges(const fs::path& path) {
  LineReader lines(path);
  std::string_view line;
  EdgeTableShape shape;
  if (!lines.next_content(line)) return shape;  // a graph without edges
  FieldSplitter splitter(line);
  std::vector<std::string> first, lower;
  for (const std::string_view field : splitter.split(line, lines)) {
    first.emplace_back(field);
    lower.push_back(lower_case(field));
  }
  shape.columns = first.size();
  if (shape.columns < 2)
    lines.fail("an edge needs two node ids", "separate them with commas, semicolons, tabs or blanks");
  shape.header = read_header(lower, shape);
  if (!simdjson::validate_utf8(shape.ignored)) lines.fail("a column's name is not UTF-8 text", "save it as UTF-8");
  if (shape.header) return shape;
  if (shape.columns > 3)
    lines.fail(fmt::format("has {} columns", shape.columns),
               "begin the file with a header line that names the columns source, target and, if there is one, weight");
  bool weight_is_text = shape.columns == 3 && !parse_number(first[2]) && first[2] != "{}";
  if (lines.next_content(line)) {
    const auto& second = splitter.split(line, lines);
    const auto heading = [&](size_t i) {
      return i < second.size() && !parse_integer(first[i]) && parse_integer(second[i]);
    };
    shape.header = heading(0) && heading(1);
    if (shape.header && weight_is_text && second.size() == 3) weight_is_text = !parse_number(second[2]);
  }
  if (weight_is_text)
    lines.fail(fmt::format("the third column is not a weight: {}", show(first[2])),
               "begin the file with a header line that names the columns source and target");
  if (shape.columns == 3 && first[2] != "{}") shape.weight = 2;
  return shape;
}

EdgeList read_edge_table(const fs::path& path, const EdgeTableShape& shape, NodeIndex& index) {
  LineReader lines(path);
  const bool weighted = shape.weight != EdgeTableShape::kNone;
  EdgeList edges(weighted);
  std::string_view line;
  if (!lines.next_content(line)) return edges;
  FieldSplitter splitter(line);
  if (shape.header && !lines.next_content(line)) return edges;
  const bool simple = shape.columns == 2 && shape.from == 0;
  do {
    uint64_t from = 0, to = 0;
    size_t first_length = 0;
    if (simple && read_two_integers(line, splitter.separator(), from, to, first_length)) {
      const NodeId u = index.put_digits(from, line.substr(0, first_length), lines);
      edges.add(u, index.put_digits(to, line.substr(first_length + 1), lines));
      continue;
    }
    const auto& fields = splitter.split(line, lines);
    if (fields.size() != shape.columns)
      lines.fail(fmt::format("{} columns where {} are expected", fields.size(), shape.columns));
    const NodeId u = index.put(fields[shape.from], lines), v = index.put(fields[shape.to], lines);
    edges.add(u, v, weighted ? read_weight(fields[shape.weight], lines) : 1);
  } while (lines.next_content(line));
  return edges;
}

}  // namespace cgcn
