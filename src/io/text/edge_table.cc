#include "io/text/edge_table.h"

#include <simdjson.h>

#include <algorithm>

namespace cgcn {
namespace {

constexpr int kLinesLookedAt = 1000;  // to tell a header line from an edge

size_t find_name(const std::vector<std::string>& names, std::initializer_list<std::string_view> known) {
  for (size_t i = 0; i < names.size(); ++i)
    if (std::find(known.begin(), known.end(), names[i]) != known.end()) return i;
  return EdgeTableShape::kNone;
}

bool is_weight_name(const std::string& name) {
  return name == "weight" || name == "weights" || name == "w" || name == "value";
}

// Columns by their names, or false if the line is no header that is known.
bool read_header(const std::vector<std::string>& names, EdgeTableShape& shape) {
  const size_t from = find_name(names, {"source", "src", "from", "u", "node1", "node_1", "id1", "id_1", "start", "head",
                                        "citing", "source_id", "from_id", "fromnodeid"});
  const size_t to = find_name(names, {"target", "dst", "dest", "destination", "to", "v", "node2", "node_2", "id2",
                                      "id_2", "end", "tail", "cited", "target_id", "to_id", "tonodeid"});
  if (from == EdgeTableShape::kNone || to == EdgeTableShape::kNone) return false;
  shape.from = from;
  shape.to = to;
  for (size_t i = 0; i < names.size() && shape.weight == EdgeTableShape::kNone; ++i)
    if (is_weight_name(names[i])) shape.weight = i;
  for (size_t i = 0; i < names.size(); ++i)
    if (i != shape.from && i != shape.to && i != shape.weight)
      shape.ignored += (shape.ignored.empty() ? "" : ", ") + (names[i].empty() ? "the index" : names[i]);
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

// Compares the first line with those below it: text over whole numbers is a header. Returns the second line's fields.
std::vector<std::string> look_below(LineReader& lines, FieldSplitter& splitter, const std::vector<std::string>& first,
                                    EdgeTableShape& shape, HeaderLine header) {
  std::vector<std::string> second;
  bool heading[2] = {!parse_integer(first[0]), !parse_integer(first[1])};
  bool over_weights = first.size() == 3 && !parse_number(first[2]) && first[2] != "{}";
  std::string_view line;
  for (int i = 0; i < kLinesLookedAt && lines.next_content(line); ++i) {
    const auto& fields = splitter.split(line, lines);
    if (i == 0) second.assign(fields.begin(), fields.end());
    for (size_t c = 0; c < 2; ++c) heading[c] &= c < fields.size() && parse_integer(fields[c]).has_value();
    over_weights = over_weights && fields.size() == 3 && parse_number(fields[2]).has_value();
  }
  // One column of numbers is enough if the other has text all the way down, the first line included.
  if (header == HeaderLine::kAuto && !second.empty())
    shape.header = (heading[0] || heading[1] || over_weights) && !parse_integer(first[0]) && !parse_integer(first[1]);
  return second;
}

float read_weight(std::string_view text, const LineReader& lines) {
  if (text == "{}") return 1;  // networkx writes an edge without attributes so
  const float weight = parse_finite(text, lines, "an edge weight");
  if (weight < 0) lines.fail(fmt::format("negative edge weight {}", show(text)));
  return weight;
}

// first: the fields of the first line.
EdgeTableShape find_edge_columns(const fs::path& path, HeaderLine header, std::vector<std::string>& first) {
  LineReader lines(path);
  std::string_view line;
  EdgeTableShape shape;
  if (!lines.next_content(line)) return shape;  // a graph without edges
  FieldSplitter splitter(line);
  std::vector<std::string> lower;
  for (const std::string_view field : splitter.split(line, lines)) {
    first.emplace_back(field);
    lower.push_back(lower_case(field));
  }
  const std::string first_line(line), place = lines.where();
  shape.columns = first.size();
  if (shape.columns < 2)
    lines.fail("an edge needs two node ids", "separate them with commas, semicolons, tabs or blanks");
  const bool known = header != HeaderLine::kNo && read_header(lower, shape);
  shape.header = known || header == HeaderLine::kYes;
  if (known) return shape;
  if (header != HeaderLine::kNo && first[0].empty() && shape.columns > 2) {  // pandas' index, and names of any kind
    shape.header = true;
    shape.from = 1;
    shape.to = 2;
    if (shape.columns == 4 && is_weight_name(lower[3])) shape.weight = 3;
    if (shape.columns > (shape.weight == 3 ? 4u : 3u))
      lines.fail(fmt::format("has {} columns and an index", shape.columns - 1),
                 "name the columns of the edge list source, target and optionally weight");
    return shape;
  }
  if (shape.columns > 3)
    lines.fail(fmt::format("has {} columns{}", shape.columns,
                           parse_number(first[0]) ? "" : ", and its header does not say which two hold node ids"),
               "begin the file with a header line that names the columns source, target and optionally weight");
  const std::vector<std::string> second = look_below(lines, splitter, first, shape, header);
  if (header == HeaderLine::kAuto && !parse_integer(first[0]) && !parse_integer(first[1])) shape.doubtful = first_line;
  if (shape.columns < 3) return shape;
  const auto is_weight = [](const std::string& field) { return parse_number(field).has_value() || field == "{}"; };
  if (shape.header && !is_weight_name(lower[2])) {  // a time, a rating …: only what is called a weight is one
    shape.ignored = first[2];
    return shape;
  }
  const std::string& example = shape.header && second.size() == 3 ? second[2] : first[2];
  if (!shape.header && !is_weight(example))
    throw Error(fmt::format("the third column is not a weight: {}", show(example)), place,
                "begin the file with a header line that names the columns source and target");
  if (example != "{}") shape.weight = 2;
  return shape;
}

}  // namespace

EdgeTableShape look_at_edges(const fs::path& path, HeaderLine header) {
  std::vector<std::string> first;
  EdgeTableShape shape = find_edge_columns(path, header, first);
  if (!shape.header) {
    if (!shape.doubtful.empty()) shape.first_ids = {first[0], first[1]};
    return shape;
  }
  shape.from_name = first[shape.from];
  shape.to_name = first[shape.to];
  if (shape.weight != EdgeTableShape::kNone) shape.weight_name = first[shape.weight];
  for (const std::string* name : {&shape.from_name, &shape.to_name, &shape.weight_name, &shape.ignored})
    if (!simdjson::validate_utf8(*name))
      throw Error("a column's name is not UTF-8 text", path.string(), "save it as UTF-8");
  return shape;
}

std::string describe_columns(const EdgeTableShape& shape) {
  if (!shape.header) return shape.weight == EdgeTableShape::kNone ? "two columns of node ids" : "ids, ids and weights";
  std::string text = fmt::format("edges from column {} to {}", show(shape.from_name), show(shape.to_name));
  if (!shape.weight_name.empty()) text += fmt::format(", weights from {}", show(shape.weight_name));
  if (!shape.ignored.empty()) text += "; not read: " + shape.ignored;
  return text;
}

namespace {

// Calls use(from, to, weight) for every edge whose ends the index knows.
template <class Use>
void for_each_edge(const fs::path& path, const EdgeTableShape& shape, NodeIndex& index, Use&& use) {
  LineReader lines(path);
  const bool weighted = shape.weight != EdgeTableShape::kNone;
  std::string_view line;
  if (!lines.next_content(line)) return;
  FieldSplitter splitter(line);
  if (shape.header && !lines.next_content(line)) return;
  const bool simple = shape.columns == 2 && shape.from == 0;
  do {
    uint64_t from = 0, to = 0;
    size_t first_length = 0;
    if (simple && read_two_integers(line, splitter.separator(), from, to, first_length)) {
      const NodeId u = index.put_digits(from, line.substr(0, first_length), lines);
      const NodeId v = index.put_digits(to, line.substr(first_length + 1), lines);
      if (u != kNoNode && v != kNoNode) use(u, v, 1.0f);
      continue;
    }
    const auto& fields = splitter.split(line, lines);
    if (fields.size() != shape.columns)
      lines.fail(fmt::format("{} columns, expected {}", fields.size(), shape.columns));
    const NodeId u = index.put(fields[shape.from], lines), v = index.put(fields[shape.to], lines);
    const float weight = weighted ? read_weight(fields[shape.weight], lines) : 1;
    if (u != kNoNode && v != kNoNode) use(u, v, weight);
  } while (lines.next_content(line));
  index.refuse_unknown(path);
}

}  // namespace

EdgeList read_edge_table(const fs::path& path, const EdgeTableShape& shape, NodeIndex& index, const EdgeLimit& limit) {
  const bool weighted = shape.weight != EdgeTableShape::kNone;
  EdgeList edges(weighted, limit);
  if (weighted)
    for_each_edge(path, shape, index, [&](NodeId u, NodeId v, float weight) { edges.add(u, v, weight); });
  else
    for_each_edge(path, shape, index, [&](NodeId u, NodeId v, float) { edges.add(u, v); });
  return edges;
}

NodeIndex read_edge_ids(const fs::path& path, const EdgeTableShape& shape) {
  const auto read = [&](bool fast) {
    NodeIndex index = NodeIndex::open(fast);
    for_each_edge(path, shape, index, [](NodeId, NodeId, float) {});
    index.close(path);
    return index;
  };
  try {
    return read(/*fast=*/true);
  } catch (const NodeIndex::NotFast&) {
    return read(/*fast=*/false);
  }
}

FirstEdge look_at_first_edge(const fs::path& path, const EdgeTableShape& shape) {
  const auto& [first, second] = shape.first_ids;
  bool begun = false, recurs = false;
  {
    LineReader lines(path);
    std::string_view line;
    lines.next_content(line);
    FieldSplitter splitter(line);
    while (!recurs && lines.next_content(line)) {
      const auto& fields = splitter.split(line, lines);
      begun = true;
      for (size_t c = 0; c < std::min<size_t>(2, fields.size()); ++c)
        recurs |= fields[c] == first || fields[c] == second;
    }
  }
  if (recurs || !begun) return FirstEdge::kLikeOthers;
  NodeIndex index = NodeIndex::open(/*fast=*/false);
  std::vector<bool> seen, again;
  const auto count = [&](NodeId v) {
    if (v >= seen.size()) {
      seen.resize(size_t{v} + 1);
      again.resize(size_t{v} + 1);
    }
    if (seen[v]) again[v] = true;
    seen[v] = true;
  };
  for_each_edge(path, shape, index, [&](NodeId u, NodeId v, float) {
    count(u);
    count(v);
  });
  uint64_t alone = 0;
  for_each_edge(path, shape, index, [&](NodeId u, NodeId v, float) { alone += !again[u] && !again[v] ? 1 : 0; });
  return alone > 1 ? FirstEdge::kAlone : FirstEdge::kOnlyOneAlone;
}

}  // namespace cgcn
