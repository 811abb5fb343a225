#include "io/text/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace cgcn {
namespace {

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  return text;
}

char find_separator(std::string_view line) {
  bool quoted = false, comma = false, semicolon = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\t') return '\t';
    comma |= c == ',';
    semicolon |= c == ';';
  }
  return comma ? ',' : semicolon ? ';' : ' ';
}

}  // namespace

FieldSplitter::FieldSplitter(std::string_view line) : separator_(find_separator(trim(line))) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  tabs_ = static_cast<size_t>(std::count(line.begin(), line.end(), '\t'));
}

const std::vector<std::string_view>& FieldSplitter::split(std::string_view line, const LineReader& at) {
  fields_.clear();
  if (separator_ == ' ') line = trim(line);
  if (line.find('"') != std::string_view::npos)
    split_quoted(line, at);
  else if (separator_ == ' ')
    split_at_blanks(line);
  else
    split_plain(line);
  if (separator_ == '\t')  // a field may be empty, also the first and the last; but not behind those of the first line
    while (fields_.size() > tabs_ + 1 && fields_.back().empty()) fields_.pop_back();
  return fields_;
}

void FieldSplitter::split_plain(std::string_view line) {
  for (;;) {
    const size_t end = line.find(separator_);
    fields_.push_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

void FieldSplitter::split_at_blanks(std::string_view line) {
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    fields_.push_back(line.substr(0, end));
    line = trim(line.substr(end));
  }
}

void FieldSplitter::split_quoted(std::string_view line, const LineReader& at) {
  unquoted_.clear();
  const auto skip_blanks = [&](size_t& i) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t') && line[i] != separator_) ++i;
  };
  for (size_t i = 0;; ++i) {
    skip_blanks(i);
    if (i < line.size() && line[i] == '"') {
      std::string text;
      for (++i;; ++i) {
        if (i >= line.size()) at.fail("a quote is not closed", "fields may not span lines");
        if (line[i] != '"') {
          text.push_back(line[i]);
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          text.push_back('"');
          ++i;
        } else {
          break;
        }
      }
      ++i;
      if (separator_ != ' ') skip_blanks(i);
      if (i < line.size() && !separates(line[i])) at.fail("text follows a closing quote");
      fields_.push_back(unquoted_.emplace_back(std::move(text)));
    } else {
      const size_t begin = i;
      while (i < line.size() && !separates(line[i])) ++i;
      fields_.push_back(trim(line.substr(begin, i - begin)));
    }
    if (separator_ == ' ')  // blanks run together, and the line has none at its end
      while (i + 1 < line.size() && separates(line[i + 1])) ++i;
    if (i >= line.size()) return;
  }
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text.substr(text[0] == '-' ? 1 : 0);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  if (text == "-0") return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || status == std::errc::invalid_argument) return std::nullopt;
  if (status == std::errc::result_out_of_range) {  // from_chars leaves value alone: huge, or next to nothing
    const std::string copy(text);
    value = std::strtod(copy.c_str(), nullptr);
  }
  return value;
}

float parse_finite(std::string_view text, const LineReader& at, const char* what) {
  const std::optional<double> value = parse_number(text);
  if (!value) at.fail(fmt::format("{} is not a number: {}", what, show(text)));
  if (std::isnan(*value)) at.fail(fmt::format("{} is not a number (NaN)", what), "replace missing values first");
  const auto narrow = static_cast<float>(*value);
  if (!std::isfinite(narrow)) at.fail(fmt::format("{} is infinite or beyond float32: {}", what, show(text)));
  return narrow;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string show(std::string_view field) {
  constexpr size_t kLongest = 40;
  std::string text(field.substr(0, kLongest));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return fmt::format("'{}{}'", text, field.size() > kLongest ? "…" : "");
}

}  // namespace cgcn
