#include "io/text/feature_table.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/progress.h"
#include "io/text/class_table.h"

namespace cgcn {
namespace {

constexpr size_t kMostCategories = 1000;  // of one column

enum class Field { kNumber, kMissing, kText, kInfinite };

// rounded: takes the first whole number that float32 does not have.
Field read_field(std::string_view text, float& value, std::string& rounded) {
  const std::optional<double> number = parse_number(text);
  if (!number || std::isnan(*number)) {
    if (means_no_number(text) || number) return Field::kMissing;
    const std::string lower = lower_case(text);
    if (lower != "true" && lower != "false") return Field::kText;
    value = lower == "true" ? 1 : 0;
    return Field::kNumber;
  }
  value = static_cast<float>(*number);
  if (rounded.empty() && value != *number && *number == std::floor(*number)) rounded = text;
  return std::isfinite(value) ? Field::kNumber : Field::kInfinite;
}

NodeId check_row(const LineReader& lines, const NodeColumn& ids, const std::vector<std::string_view>& fields,
                 NodeIndex* index, uint64_t row) {
  const NodeId node = row_node(lines, ids, fields, index, row);
  if (node != row) lines.fail(fmt::format("node {} is listed twice", show(fields[ids.column])));
  return node;
}

bool is_in(size_t column, const std::vector<size_t>& columns) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

// Once, however many columns it is about.
void add_sentence(std::string& text, const std::string& sentence) {
  if (text.find(sentence) == std::string::npos) text += (text.empty() ? "" : "; ") + sentence;
}

// The columns that --drop-columns names.
std::vector<size_t> dropped_columns(const TableHead& head, const std::string& names) {
  std::vector<size_t> dropped;
  if (const size_t whole = head.find(names); whole != TableHead::kNone) return {whole};
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    dropped.push_back(find_column(head, names.substr(begin, end - begin), "--drop-columns"));
    begin = end + 1;
  }
  return dropped;
}

}  // namespace

FeatureTable::FeatureTable(TableHead head, NodeColumn ids, const ImportOptions& options, std::vector<size_t> answers,
                           std::vector<ColumnEncoding> like)
    : head_(std::move(head)),
      ids_(std::move(ids)),
      options_(options),
      answers_(std::move(answers)),
      fitted_(!like.empty()) {
  if (fitted_)
    choose_columns_like(like);
  else
    choose_columns();
  if (columns_.empty())
    throw Error("has no column of features", path().string(),
                answers_.empty() ? "" : "its columns are read as labels or split; --label-column NAME chooses one");
}

void FeatureTable::choose_columns() {
  const std::vector<size_t> dropped = dropped_columns(head_, options_.drop_columns);
  for (size_t c = 0; c < head_.width; ++c) {
    if (c == ids_.column || is_in(c, answers_)) continue;
    if (head_.is_unnamed_index(c) || is_in(c, dropped)) {
      left_out_.push_back(c);
      continue;
    }
    Column& column = columns_.emplace_back();
    column.source = c;
    column.encoding.name = head_.header ? head_.names[c] : fmt::format("column {}", c + 1);
    column.encoding.missing = options_.missing;
  }
}

void FeatureTable::choose_columns_like(const std::vector<ColumnEncoding>& like) {
  if (!head_.header)
    throw Error("its columns have no names, by which --like could find them", path().string(),
                "begin it with a header line");
  std::vector<std::string> absent;
  std::vector<bool> used(head_.width, false);
  for (const ColumnEncoding& encoding : like) {
    const size_t source = head_.find(encoding.name);
    if (source == TableHead::kNone) {
      absent.push_back(encoding.name);
      continue;
    }
    used[source] = true;
    Column& column = columns_.emplace_back();
    column.source = source;
    column.encoding = encoding;
  }
  if (!absent.empty())
    throw Error(fmt::format("has no column {}, which {} has", list_some(absent), options_.like), path().string(),
                "add it, or import both without it: --drop-columns");
  for (size_t c = 0; c < head_.width; ++c)
    if (!used[c] && c != ids_.column && !is_in(c, answers_)) left_out_.push_back(c);
}

std::string FeatureTable::describe() const {
  std::vector<size_t> used;
  for (const Column& column : columns_) used.push_back(column.source);
  std::string text =
      fmt::format("{}; {} {}", ids_.sentence, format_count(used.size()), used.size() == 1 ? "column" : "columns");
  text += head_.header ? ": " + head_.show_columns(used) : " of features";
  if (!left_out_.empty()) text += "; left out: " + head_.show_columns(left_out_);
  if (!answers_.empty()) text += "; left out as label or split: " + head_.show_columns(answers_);
  if (fitted_) text += fmt::format("; encoded as in {}", options_.like);
  return text;
}

NodeId FeatureTable::read(NodeIndex* index, StoreWriter& store) {
  if (std::all_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.encoding.plain(); }))
    if (const std::optional<NodeId> rows = read_numbers(index, store)) {
      if (head_.header) {
        std::vector<std::string> names;
        for (const Column& column : columns_) names.push_back(column.encoding.name);
        store.write_feature_names(std::move(names));
      }
      written_ = true;
      return *rows;
    }
  if (ids_.exists()) *index = NodeIndex::listed();
  const NodeId rows = scan(index);
  settle_kinds();
  return rows;
}

// Nothing if some value is no number.
std::optional<NodeId> FeatureTable::read_numbers(NodeIndex* index, StoreWriter& store) {
  LineReader lines(path());
  ArrayWriter writer = store.begin_array<float>("features", columns_.size());
  std::vector<float> row(columns_.size());
  uint64_t rows = 0;
  bool numbers = true;
  for_each_row(lines, head_, [&](const auto& fields) {
    if (!numbers) return;
    check_row(lines, ids_, fields, index, rows);
    for (size_t i = 0; i < row.size() && numbers; ++i)
      numbers = read_field(fields[columns_[i].source], row[i], columns_[i].rounded) == Field::kNumber;
    if (!numbers) return;
    writer.append(std::span<const float>(row));
    ++rows;
  });
  if (!numbers) return std::nullopt;
  if (rows == 0) throw Error("has no rows", path().string());
  store.end_array("features", writer);
  store.declare_features(FeatureMatrix::Kind::kDense32, static_cast<uint32_t>(columns_.size()));
  return static_cast<NodeId>(rows);
}

NodeId FeatureTable::scan(NodeIndex* index) {
  LineReader lines(path());
  uint64_t rows = 0;
  for_each_row(lines, head_, [&](const auto& fields) {
    check_row(lines, ids_, fields, index, rows++);
    for (Column& column : columns_) {
      const std::string_view text = fields[column.source];
      float value = 0;
      switch (column.encoding.one_hot && !means_no_number(text) ? Field::kText
                                                                : read_field(text, value, column.rounded)) {
        case Field::kInfinite:
          lines.fail(fmt::format("{} is infinite or beyond float32: {}", show_column(column), show(text)));
        case Field::kNumber:
          ++column.numbers;
          break;
        case Field::kMissing:
          if (column.missing++ == 0) column.first_missing = lines.line_number();
          break;
        case Field::kText:
          if (column.texts++ == 0) {
            column.first_text = lines.line_number();
            column.example = text;
          }
          column.dates += is_date(text) ? 1 : 0;
          if (is_foreign_number(text) && column.foreign_numbers++ == 0) column.foreign_example = text;
      }
    }
  });
  if (rows == 0) throw Error("has no rows", path().string());
  return static_cast<NodeId>(rows);
}

// What each column is, or one Error about all that cannot be taken as they are.
void FeatureTable::settle_kinds() {
  std::string problem, hint;
  uint64_t line = 0;
  std::vector<std::string> missing, texts, foreign, drop;
  const auto refuse = [&](const Column& column, uint64_t at) {
    if (line == 0 || at < line) line = at;
    drop.push_back(head_.header ? head_.names[column.source] : std::to_string(column.source + 1));
  };
  for (Column& column : columns_) {
    const std::string shown = show_column(column);
    if (column.dates > 0 && 2 * column.dates >= column.texts + column.numbers) {
      add_sentence(problem, fmt::format("{} holds dates, such as {}", shown, show(column.example)));
      add_sentence(hint, "turn dates into numbers, such as days since a date");
      refuse(column, column.first_text);
    } else if (column.foreign_numbers > 0 && !column.encoding.one_hot &&
               2 * (column.foreign_numbers + column.numbers) >= column.texts + column.numbers) {
      foreign.push_back(fmt::format("{} ({})", shown, show(column.foreign_example)));
      refuse(column, column.first_text);
    } else if (column.texts > 0 && !column.encoding.one_hot && (column.numbers > column.texts || fitted_)) {
      add_sentence(problem, fmt::format("{} holds {}, which is not a number", shown, show(column.example)));
      add_sentence(hint, "leave fields with missing values empty");
      refuse(column, column.first_text);
    } else if (column.texts > 0 && !fitted_ && options_.categorical == Categorical::kRefuse) {
      texts.push_back(fmt::format("{} ({})", shown, show(column.example)));
      refuse(column, column.first_text);
    } else if (column.texts > 0) {
      column.encoding.one_hot = true;
    }
    if (column.missing > 0 && column.encoding.missing == MissingValues::kRefuse) {
      missing.push_back(fmt::format("{} ({})", shown, format_count(column.missing)));
      refuse(column, column.first_missing);
    }
    if (column.numbers + column.texts == 0 && !fitted_) {
      add_sentence(problem, fmt::format("{} holds no value at all", shown));
      refuse(column, column.first_missing);
    }
  }
  if (!foreign.empty()) {
    add_sentence(problem, fmt::format("numbers that cannot be read in {}", fmt::join(foreign, ", ")));
    add_sentence(hint,
                 "write numbers as 1234.5, without commas and signs (pandas: read_csv with decimal or thousands)");
  }
  if (!texts.empty()) {
    add_sentence(problem, fmt::format("text in {}", fmt::join(texts, ", ")));
    add_sentence(hint, "--categorical one-hot makes a 0/1 column of each value");
  }
  if (!missing.empty()) {
    add_sentence(problem, fmt::format("missing values in {}", fmt::join(missing, ", ")));
    add_sentence(hint, fitted_ ? fmt::format("import {} again with --missing mean, zero or indicator", options_.like)
                               : "--missing mean, zero or indicator fills them in");
  }
  if (problem.empty()) return;
  std::sort(drop.begin(), drop.end());
  drop.erase(std::unique(drop.begin(), drop.end()), drop.end());
  add_sentence(
      hint, fmt::format("--drop-columns {} leaves columns out", shell_word(fmt::format("{}", fmt::join(drop, ",")))));
  throw Error(problem, fmt::format("{}:{}", path().string(), line), hint);
}

bool FeatureTable::needs_fit() const {
  return !fitted_ && std::any_of(columns_.begin(), columns_.end(), [](const Column& column) {
    return column.encoding.one_hot || column.encoding.missing == MissingValues::kMean ||
           column.encoding.missing == MissingValues::kIndicator;
  });
}

void FeatureTable::fit(std::span<const uint8_t> roles) {
  if (std::find(roles.begin(), roles.end(), static_cast<uint8_t>(Role::kTrain)) == roles.end())
    throw Error("means and categories are fitted on training nodes, and there are none", path().string(),
                "--split 60/20/20, or --split-file; or --like STORE, to encode it as an earlier table");
  std::vector<double> sums(columns_.size());
  std::vector<uint64_t> counts(columns_.size());
  std::vector<std::set<std::string, std::less<>>> categories(columns_.size());
  LineReader lines(path());
  uint64_t row = 0;
  for_each_row(lines, head_, [&](const auto& fields) {
    if (roles[row++] != static_cast<uint8_t>(Role::kTrain)) return;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view text = fields[columns_[i].source];
      float value = 0;
      if (means_no_number(text)) {
        columns_[i].encoding.indicator = columns_[i].encoding.missing == MissingValues::kIndicator;
      } else if (columns_[i].encoding.one_hot) {
        if (!simdjson::validate_utf8(text.data(), text.size()))
          lines.fail(fmt::format("{} holds {}, which is not UTF-8 text", show_column(columns_[i]), show(text)),
                     "save the file as UTF-8");
        if (!categories[i].contains(text)) categories[i].emplace(text);
        if (categories[i].size() > kMostCategories)
          throw Error(fmt::format("{} has more than {} different texts", show_column(columns_[i]), kMostCategories),
                      path().string(), fmt::format("--drop-columns {}", head_.show_column(columns_[i].source)));
      } else {
        read_field(text, value, columns_[i].rounded);
        sums[i] += value;
        ++counts[i];
      }
    }
  });
  for (size_t i = 0; i < columns_.size(); ++i) {
    ColumnEncoding& encoding = columns_[i].encoding;
    encoding.categories.assign(categories[i].begin(), categories[i].end());
    if (!encoding.one_hot && encoding.missing != MissingValues::kZero && counts[i] > 0)
      encoding.fill = static_cast<float>(sums[i] / static_cast<double>(counts[i]));
  }
}

// One field as width() numbers.
void FeatureTable::encode(std::string_view text, Column& column, float* out) const {
  const ColumnEncoding& encoding = column.encoding;
  std::fill_n(out, encoding.width(), 0.0f);
  const bool missing = means_no_number(text);
  if (encoding.indicator) out[encoding.width() - 1] = missing ? 1 : 0;
  if (encoding.one_hot) {
    const auto found = std::lower_bound(encoding.categories.begin(), encoding.categories.end(), text);
    if (found != encoding.categories.end() && *found == text)
      out[found - encoding.categories.begin()] = 1;
    else if (!missing)
      ++column.unseen;
    return;
  }
  const std::string lower = lower_case(text);
  *out = missing            ? encoding.fill
         : lower == "true"  ? 1
         : lower == "false" ? 0
                            : static_cast<float>(parse_number(text).value_or(0));
}

void FeatureTable::write(StoreWriter& store) {
  size_t width = 0;
  for (const Column& column : columns_) width += column.encoding.width();
  if (width == 0) throw Error("has no column of features", path().string());
  LineReader lines(path());
  ArrayWriter writer = store.begin_array<float>("features", width);
  std::vector<float> row(width);
  for_each_row(lines, head_, [&](const auto& fields) {
    float* out = row.data();
    for (Column& column : columns_) {
      encode(fields[column.source], column, out);
      out += column.encoding.width();
    }
    writer.append(std::span<const float>(row));
  });
  store.end_array("features", writer);
  store.declare_features(FeatureMatrix::Kind::kDense32, static_cast<uint32_t>(width));
  std::vector<ColumnEncoding> encoding;
  for (const Column& column : columns_) encoding.push_back(column.encoding);
  store.write_feature_names(feature_names(encoding), encoding);
}

void FeatureTable::tell(ImportReport& report) const {
  for (const Column& column : columns_) {
    const ColumnEncoding& encoding = column.encoding;
    std::string text;
    if (encoding.one_hot)
      text = fmt::format("one-hot, {} {}", format_count(encoding.categories.size()),
                         encoding.categories.size() == 1 ? "category" : "categories");
    if (column.missing > 0 && encoding.one_hot)
      add_sentence(text, fmt::format("{} missing", format_count(column.missing)));
    else if (column.missing > 0)
      add_sentence(text, fmt::format("{} missing, filled with {}", format_count(column.missing),
                                     encoding.missing == MissingValues::kZero
                                         ? "0"
                                         : fmt::format("{:.6g}, the mean over training nodes", encoding.fill)));
    if (encoding.indicator) add_sentence(text, fmt::format("'{} (missing)' marks missing values", encoding.name));
    if (column.unseen > 0)
      add_sentence(text, fmt::format("{} {} no category: 0 in all of them", format_count(column.unseen),
                                     column.unseen == 1 ? "value that is" : "values that are"));
    if (!column.rounded.empty())
      add_sentence(text, fmt::format("float32 has no {}: large whole numbers are rounded (smaller ones, such as days "
                                     "since a date, are not)",
                                     column.rounded));
    if (!text.empty()) report.lines.push_back(fmt::format("{}: {}", show_column(column), text));
  }
}

void FeatureTable::finish(std::span<const uint8_t> roles, StoreWriter& store, ImportReport& report) {
  if (!written_ && needs_fit()) fit(roles);
  if (!written_) write(store);
  tell(report);
}

}  // namespace cgcn
