#include "io/text/table_head.h"

#include <simdjson.h>

#include <algorithm>
#include <set>

#include "common/log.h"
#include "io/text/class_table.h"
#include "io/text/node_column.h"
#include "io/text/split_table.h"

namespace cgcn {
namespace {

constexpr size_t kRowsLookedAt = 1000;

bool is_plain_number(const std::string& text) { return parse_number(text).has_value() && !means_no_number(text); }
bool is_word(const std::string& text) { return !parse_number(text) && !means_no_number(text); }

// The fields of the first lines that say something. Error if there is none at all.
std::vector<Fields> first_lines(const fs::path& path) {
  LineReader lines(path);
  std::string_view line;
  std::vector<Fields> result;
  if (!lines.next_content(line)) throw Error("is empty", path.string());
  FieldSplitter splitter(line);
  do {
    const auto& split = splitter.split(line, lines);
    result.emplace_back(split.begin(), split.end());
  } while (result.size() <= kRowsLookedAt && lines.next_content(line));
  return result;
}

// 0, 1, 2 … from the given column on: what pandas calls columns that have no names.
bool counts_from_zero(const Fields& first, size_t from) {
  for (size_t c = from; c < first.size(); ++c)
    if (first[c] != std::to_string(c - from)) return false;
  return first.size() > from;
}

// Text in the first line of a column that has numbers all the way below it.
bool has_text_over_numbers(const std::vector<Fields>& lines) {
  for (size_t c = 0; c < lines[0].size(); ++c) {
    if (!is_word(lines[0][c])) continue;
    size_t numbers = 0;
    bool words = false;
    for (size_t i = 1; i < lines.size() && !words; ++i) {
      if (c >= lines[i].size()) continue;
      words = is_word(lines[i][c]);
      numbers += is_plain_number(lines[i][c]) ? 1 : 0;
    }
    if (!words && numbers > 0) return true;
  }
  return false;
}

bool looks_like_header(const std::vector<Fields>& lines, TableKind kind) {
  const Fields& first = lines[0];
  const auto numbers = static_cast<size_t>(std::count_if(first.begin(), first.end(), is_plain_number));
  const bool words = std::any_of(first.begin(), first.end(), is_word);
  if (first[0].empty() && first.size() > 1)  // pandas: over its index
    return (words && numbers == 0) || counts_from_zero(first, 1) || has_text_over_numbers(lines);
  if (kind == TableKind::kFeatures && first.size() > 2 && counts_from_zero(first, 0)) return true;
  if (!words) return false;
  if (has_text_over_numbers(lines) || (first.size() > 1 && is_node_name(first[0]))) return true;
  if (kind == TableKind::kFeatures) return numbers == 0;
  if (kind == TableKind::kRoles) return std::none_of(first.begin(), first.end(), is_role_name);
  return names_a_class(first.back()) || (first.size() > 2 && numbers == 0);
}

Fields unique_names(const Fields& first, const fs::path& path) {
  Fields names;
  std::set<std::string> taken;
  for (size_t c = 0; c < first.size(); ++c) {
    if (!simdjson::validate_utf8(first[c]))
      throw Error("a column's name is not UTF-8 text", path.string(), "save it as UTF-8");
    std::string name = first[c].empty() ? fmt::format("column {}", c + 1) : first[c];
    for (int copy = 1; taken.contains(name); ++copy) name = fmt::format("{}.{}", first[c], copy);  // as pandas does
    taken.insert(name);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

size_t TableHead::find(const std::string& name) const {
  if (const auto found = std::find(names.begin(), names.end(), name); found != names.end())
    return static_cast<size_t>(found - names.begin());
  for (size_t c = 0; c < names.size(); ++c)
    if (lower_case(names[c]) == lower_case(name)) return c;
  return kNone;
}

std::string TableHead::show_column(size_t column) const {
  if (is_unnamed_index(column)) return "the unnamed first";
  return names.empty() ? std::to_string(column + 1) : show(names[column]);
}

std::string TableHead::show_columns(const std::vector<size_t>& columns) const {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns.size() > kShown && i == kShown - 1) {
      text += fmt::format(" … {}", show_column(columns.back()));
      break;
    }
    text += (i == 0 ? "" : ", ") + show_column(columns[i]);
  }
  return text;
}

TableHead look_at_table(const fs::path& path, HeaderLine header, TableKind kind) {
  std::vector<Fields> lines = first_lines(path);
  TableHead head;
  head.path = path;
  head.kind = kind;
  head.width = lines[0].size();
  head.header = header == HeaderLine::kAuto ? looks_like_header(lines, kind) : header == HeaderLine::kYes;
  if (head.header) {
    head.unnamed_first = head.width > 1 && lines[0][0].empty();
    head.names = unique_names(lines[0], path);
    if (std::none_of(lines[0].begin(), lines[0].end(), is_word) && header == HeaderLine::kYes)
      log::warn("{}: the first line, {}, was taken for column names, as --header says", path.string(),
                show(fmt::format("{}", fmt::join(lines[0], ","))));
    lines.erase(lines.begin());
  } else if (lines.size() > kRowsLookedAt) {
    lines.pop_back();
  }
  head.rows = std::move(lines);
  return head;
}

size_t find_column(const TableHead& head, const std::string& name, const char* option, bool optional) {
  if (const size_t found = head.find(name); found != TableHead::kNone) return found;
  if (const auto number = parse_integer(name);
      !head.header && number && *number >= 1 && static_cast<uint64_t>(*number) <= head.width)
    return static_cast<size_t>(*number) - 1;
  if (optional) return TableHead::kNone;
  std::vector<size_t> all(head.width);
  for (size_t c = 0; c < all.size(); ++c) all[c] = c;
  throw Error(fmt::format("{} has no column {}", head.path.filename().string(), show(name)), option,
              head.header ? "one of " + head.show_columns(all)
                          : fmt::format("its columns have no names: a number from 1 to {}", head.width));
}

bool is_foreign_number(std::string_view text) {
  if (parse_number(text)) return false;
  for (const std::string_view currency : {"$", "€", "£", "¥"}) {
    if (text.starts_with(currency)) text.remove_prefix(currency.size());
    if (text.ends_with(currency)) text.remove_suffix(currency.size());
  }
  if (text.ends_with('%')) text.remove_suffix(1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::string plain;
  size_t commas = 0;
  bool thousands = true;  // every comma has three digits behind it
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',' && text[i] != ' ') {
      plain += text[i];
      continue;
    }
    const size_t end = std::min(text.find_first_not_of("0123456789", i + 1), text.size());
    if (text[i] == ' ' && end - i != 4) return false;  // 114 55 is a code
    if (text[i] == ' ') continue;
    ++commas;
    thousands = thousands && end - i == 4;
  }
  return (commas < 2 || thousands) && parse_number(plain) && plain.find_first_not_of("+-.0123456789") == plain.npos;
}

bool is_date(std::string_view text) {
  const auto digits = [&](size_t at, size_t count) {
    if (at + count > text.size()) return false;
    return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at),
                       text.begin() + static_cast<std::ptrdiff_t>(at + count),
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  const auto separator = [&](size_t at) {
    return at < text.size() && (text[at] == '-' || text[at] == '/' || text[at] == '.');
  };
  // A year, a month, perhaps a day and a time; or the day or month first, the year last.
  if (digits(0, 4) && separator(4) && digits(5, 2))
    return text.size() == 7 || (separator(7) && digits(8, 2) && text[7] == text[4]);
  size_t at = 0;
  for (int field = 0; field < 2; ++field) {
    const size_t begin = at;
    while (digits(at, 1)) ++at;
    if (at == begin || at - begin > 2 || !separator(at)) return false;
    ++at;
  }
  return digits(at, 4) || (digits(at, 2) && at + 2 == text.size() && text[at - 1] != '.');
}

}  // namespace cgcn
