#include "io/text/node_column.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "common/progress.h"
#include "io/text/class_table.h"

namespace cgcn {
namespace {

constexpr std::array<std::string_view, 11> kNodeNames = {"id",     "ids",  "node",  "nodes", "node_id", "nodeid",
                                                         "vertex", "name", "index", "idx",   "key"};
constexpr uint64_t kFewRows = 20;  // fewer: that numbers are ids, too, is likely to be chance

// A column that may name the nodes, and how its values compare with the ids of the edges.
struct Candidate {
  size_t column;
  bool named;                    // by its name, and not by its values alone
  uint64_t rows = 0, known = 0;  // known: different ids that the edges have
  uint64_t missing = 0, repeated = 0;
  std::string defect = {};  // the first row without an id of its own
  TextTable seen = {};

  bool unique() const { return missing + repeated == 0; }
  // Every id of the edges has a row; of labels and splits, which may list some nodes only: or every row is such an id.
  bool fits(uint64_t ids, TableKind kind) const {
    return unique() && known > 0 && (known == ids || (kind != TableKind::kFeatures && known == rows));
  }
  bool mostly_fits(uint64_t ids, double share) const {
    return unique() && (static_cast<double>(known) >= share * static_cast<double>(rows) ||
                        static_cast<double>(known) >= share * static_cast<double>(ids));
  }
  // Ids but for a few rows.
  bool has_few_defects() const { return missing + repeated <= std::max<uint64_t>(1, rows / 20); }
  bool is_spoilt(uint64_t ids, bool header) const {
    if (unique() || known == 0) return false;
    if (named) return 2 * known >= seen.size();
    const bool by_chance = rows < kFewRows && !(header && column == 0);
    return !by_chance && has_few_defects() && known + missing + repeated >= ids;
  }
  // Nearly one row per id, as in a table with a row too many; few ids in many rows are a property of the nodes.
  bool nearly_unique() const { return rows > 0 && 2 * uint64_t{seen.size()} >= rows; }
};

// Whether the values of a column may be ids, as far as the first rows show: texts or whole numbers, also as 007, 7.0 or
// of twenty digits. Up to so many rows may have none, or one that was there before.
bool may_be_ids(const TableHead& head, size_t column, size_t defects = 0) {
  std::unordered_set<std::string_view> seen;
  size_t others = 0;
  for (const Fields& row : head.rows) {
    if (column >= row.size()) return false;
    const std::string& text = row[column];
    const bool missing = means_no_number(text);
    const std::optional<double> number = parse_number(text);
    if (!missing && number && *number != std::floor(*number)) return false;
    if (missing || !seen.insert(text).second) ++others;
  }
  return !seen.empty() && others <= defects;
}

bool only_first_is_text(const Fields& row) {
  return !parse_number(row[0]) && !means_no_number(row[0]) &&
         std::all_of(row.begin() + 1, row.end(),
                     [](const std::string& text) { return parse_number(text).has_value(); });
}

void measure(const TableHead& head, std::vector<Candidate>& candidates, const NodeIndex& ids) {
  LineReader lines(head.path);
  for_each_row(lines, head, [&](const std::vector<std::string_view>& fields) {
    for (Candidate& candidate : candidates) {
      if (!candidate.named && !candidate.has_few_defects()) continue;
      const std::string_view id = fields[candidate.column];
      const NodeId before = candidate.seen.size();
      ++candidate.rows;
      const bool missing = means_no_number(id) && !ids.knows(id);
      if (missing || candidate.seen.put(id) != before) {
        ++(missing ? candidate.missing : candidate.repeated);
        if (candidate.defect.empty())
          candidate.defect = missing ? fmt::format("line {} has none", lines.line_number())
                                     : fmt::format("{} occurs more than once", show(id));
      } else {
        candidate.known += ids.knows(id) ? 1 : 0;
      }
    }
  });
}

NodeColumn chosen(const TableHead& head, size_t column, const std::string& why = {}) {
  if (head.is_unnamed_index(column)) return {column, "the first column, which has no name, names the nodes"};
  return {column, fmt::format("column {} names the nodes{}", head.show_column(column), why)};
}

std::string how_to_choose(const TableHead& head, size_t column) {
  return fmt::format("--id-column {} takes it for the ids, --id-column none means that row i is node i",
                     head.names.empty() ? std::to_string(column + 1) : head.names[column]);
}

std::vector<Candidate> find_candidates(const TableHead& head, const EdgeIds& edges) {
  std::vector<Candidate> candidates;
  for (size_t c = 0; c < head.width; ++c) {
    const bool named =
        head.header && (is_node_name(head.names[c]) || edges.has_column(head.names[c]) || head.is_unnamed_index(c) ||
                        (ends_in_id(head.names[c]) && may_be_ids(head, c, head.rows.size())));
    // In a few rows of numbers without names, one column or other is like ids by chance.
    const bool by_values = may_be_ids(head, c, std::max<size_t>(1, head.rows.size() / 20)) &&
                           (head.header || c == 0 || head.rows.size() >= kFewRows);
    if (named || by_values) candidates.push_back({.column = c, .named = named});
  }
  return candidates;
}

// The one of several that is meant, or an Error.
NodeColumn settle(const TableHead& head, std::vector<Candidate> fitting, const EdgeIds& edges, size_t fallback) {
  for (const Candidate& candidate : fitting)
    if (candidate.column == fallback) return chosen(head, fallback);
  if (fitting.size() > 1)  // an index that pandas wrote is no more than the row's number
    std::erase_if(fitting, [&](const Candidate& candidate) { return head.is_unnamed_index(candidate.column); });
  if (fitting.size() == 1) return chosen(head, fitting[0].column);
  std::vector<size_t> columns;
  for (const Candidate& candidate : fitting) columns.push_back(candidate.column);
  throw Error(fmt::format("columns {} all look like node ids of {}", head.show_columns(columns), edges.file()),
              head.path.string(), how_to_choose(head, columns[0]));
}

// Candidates exist, and their values decide.
NodeColumn decide_by_values(const TableHead& head, std::vector<Candidate> candidates, EdgeIds& edges, size_t fallback) {
  const uint64_t ids = edges.get().size();
  if (ids == 0) return fallback == NodeColumn::kNone ? NodeColumn() : chosen(head, fallback);
  measure(head, candidates, edges.get());
  const auto select = [&](auto&& holds) {
    std::vector<Candidate> selected;
    for (const Candidate& candidate : candidates)
      if (holds(candidate)) selected.push_back({candidate.column, candidate.named});
    return selected;
  };
  for (const auto& fitting : {select([&](const Candidate& c) { return c.named && c.fits(ids, head.kind); }),
                              select([&](const Candidate& c) { return c.named && c.mostly_fits(ids, 0.5); }),
                              select([&](const Candidate& c) { return !c.named && c.fits(ids, head.kind); })})
    if (!fitting.empty()) return settle(head, fitting, edges, fallback);
  if (fallback != NodeColumn::kNone) return chosen(head, fallback);
  for (const Candidate& c : candidates) {
    if (head.is_unnamed_index(c.column) || !c.nearly_unique()) continue;
    if (c.is_spoilt(ids, head.header))
      throw Error(fmt::format("column {} looks like node ids, but {}", head.show_column(c.column), c.defect),
                  head.path.string(), "one row per node, each with its id; or " + how_to_choose(head, c.column));
    if (c.unique() && (c.named || (c.rows >= kFewRows && c.mostly_fits(ids, 0.9))))
      throw Error(
          c.known == c.rows
              ? fmt::format("column {} looks like node ids, but {} of the {} ids in {} are not in it",
                            head.show_column(c.column), format_count(ids - c.known), format_count(ids), edges.file())
              : fmt::format("column {} looks like node ids, but {} of its {} values are ids in {}",
                            head.show_column(c.column), c.known == 0 ? "none" : format_count(c.known),
                            format_count(c.rows), edges.file()),
          head.path.string(), how_to_choose(head, c.column));
  }
  if (head.unnamed_first) return chosen(head, 0);
  return {};
}

// What --id-column says of this table; nothing if it names no column of it.
std::optional<NodeColumn> column_by_option(const TableHead& head, const std::string& option) {
  if (option.empty()) return std::nullopt;
  if (const size_t found = find_column(head, option, "--id-column", true); found != TableHead::kNone)
    return chosen(head, found, " (--id-column)");
  if (option == "none") return NodeColumn{NodeColumn::kNone, "row i is node i (--id-column none)"};
  for (size_t begin = 0; begin <= option.size();) {
    const size_t end = std::min(option.find(',', begin), option.size());
    if (const size_t found = find_column(head, option.substr(begin, end - begin), "--id-column", true);
        found != TableHead::kNone)
      return chosen(head, found, " (--id-column)");
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

bool is_node_name(std::string_view name) {
  return std::find(kNodeNames.begin(), kNodeNames.end(), lower_case(name)) != kNodeNames.end();
}

bool is_unmistakable(std::string_view name) {
  const std::string lower = lower_case(name);
  return is_node_name(name) && lower != "index" && lower != "idx" && lower != "key" && lower != "name";
}

bool ends_in_id(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower.size() > 2 && lower.ends_with("id");
}

bool names_a_class(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const char* known : {"label", "labels", "class", "classes", "y", "target", "category", "type"})
    if (lower == known) return true;
  return false;
}

bool EdgeIds::has_column(std::string_view name) const {
  return std::any_of(column_names_.begin(), column_names_.end(),
                     [&](const std::string& known) { return lower_case(known) == lower_case(name); });
}

bool is_header_by_ids(const TableHead& head, EdgeIds& edges) {
  constexpr size_t kLeastRows = 3;
  if (head.width < 2 || head.rows.size() < kLeastRows) return false;
  const Fields& first = head.rows[0];
  bool ids = false;
  for (size_t c = 0; c < head.width; ++c) {
    if (parse_number(first[c]) || means_no_number(first[c])) return false;
    bool known = true;
    for (size_t i = 1; i < head.rows.size(); ++i) {
      if (c >= head.rows[i].size() || head.rows[i][c] == first[c]) return false;
      known = known && edges.get().knows(head.rows[i][c]);
    }
    ids = ids || (known && !edges.get().knows(first[c]));
  }
  return ids;
}

NodeColumn choose_node_column(const TableHead& head, const std::string& id_column, EdgeIds& edges, size_t fallback) {
  if (const auto given = column_by_option(head, id_column)) {
    edges.option_used = true;
    if (given->exists() && head.width == 1) throw Error("has node ids but no other column", head.path.string());
    return *given;
  }
  if (head.width == 1) {
    if (head.header && is_node_name(head.names[0])) throw Error("has node ids but no other column", head.path.string());
    return {};
  }
  const std::vector<Candidate> candidates = find_candidates(head, edges);
  const auto named = static_cast<size_t>(
      std::count_if(candidates.begin(), candidates.end(), [](const Candidate& candidate) { return candidate.named; }));
  // A first column that is called id, and nothing else like it, needs no look at the edges.
  if (named == 1 && candidates[0].named && candidates[0].column == 0 &&
      (candidates.size() == 1 || is_unmistakable(head.names[0])))
    return chosen(head, 0);
  // Without a header, a first column of texts over a table of numbers names the nodes, whatever the edges hold.
  if (!head.header && (only_first_is_text(head.rows[0]) || (!parse_number(head.rows[0][0]) && may_be_ids(head, 0))))
    return chosen(head, 0);
  if (candidates.empty()) return fallback == NodeColumn::kNone ? NodeColumn() : chosen(head, fallback);
  return decide_by_values(head, candidates, edges, fallback);
}

}  // namespace cgcn
