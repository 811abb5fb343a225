// Tables of text about nodes: what their first lines show, and the rows of them.
//
// A table may begin with a header line. Unless the user says, the first line is one if it has no number in it, or
// text over numbers, or an empty first field (as pandas writes above its index), or the names 0, 1, 2 … that pandas
// gives to columns without names.
#pragma once

#include <string>
#include <vector>

#include "io/reader.h"
#include "io/text/fields.h"

namespace cgcn {

using Fields = std::vector<std::string>;

enum class TableKind { kFeatures, kClasses, kRoles };

struct TableHead {
  fs::path path;
  TableKind kind = TableKind::kFeatures;
  bool header = false;
  Fields names;              // of all columns, each different; empty without a header
  std::vector<Fields> rows;  // the first of those below it
  size_t width = 0;          // columns, of the first line

  static constexpr size_t kNone = SIZE_MAX;
  size_t find(const std::string& name) const;    // by name, else by a name in other case; kNone if there is none
  std::string show_column(size_t column) const;  // 'age', or 3 if columns have no names
  std::string show_columns(const std::vector<size_t>& columns) const;
  bool is_unnamed_index(size_t column) const { return column == 0 && header && unnamed_first; }
  bool unnamed_first = false;  // the header has nothing above the first column
};

TableHead look_at_table(const fs::path& path, HeaderLine header, TableKind kind);

// A column as the user named it (or numbered it from 1, if there is no header). Error naming `option`, with the
// columns that there are, if there is no such; kNone instead if `optional`.
size_t find_column(const TableHead& head, const std::string& name, const char* option, bool optional = false);

// Such as 2021-03-04, 04/03/2021, 2021-03-04T10:00:00.
bool is_date(std::string_view text);
// A number that parse_number() does not take: 0,5; 1,234.5; 12 %; $3.
bool is_foreign_number(std::string_view text);

// Calls use(fields) for each row of the table, its header passed over, its width checked.
template <class Use>
void for_each_row(LineReader& lines, const TableHead& head, Use&& use) {
  std::string_view line;
  if (!lines.next_content(line)) return;
  FieldSplitter splitter(line);
  if (head.header && !lines.next_content(line)) return;
  do {
    const auto& fields = splitter.split(line, lines);
    if (fields.size() != head.width) lines.fail(fmt::format("{} columns, expected {}", fields.size(), head.width));
    use(fields);
  } while (lines.next_content(line));
}

}  // namespace cgcn
