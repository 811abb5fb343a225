// The fields of a line: separated by commas, semicolons, tabs or blanks, quoted or not; and the numbers in them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/line_reader.h"

namespace cgcn {

class FieldSplitter {
 public:
  // Looks at one line (the first) to learn what separates fields: tab before comma before semicolon before blanks.
  explicit FieldSplitter(std::string_view line);

  // Fields without the blanks around them and without quotes ("" within quotes is one quote). The views hold until the
  // next call or the next line. `at` names the place in an Error if a quote is not closed.
  const std::vector<std::string_view>& split(std::string_view line, const LineReader& at);
  char separator() const { return separator_; }

 private:
  void split_plain(std::string_view line);
  void split_at_blanks(std::string_view line);
  void split_quoted(std::string_view line, const LineReader& at);
  bool separates(char c) const { return c == separator_ || (separator_ == ' ' && c == '\t'); }

  char separator_;
  size_t tabs_;  // in the first line, those at its end not counted
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // what had doubled quotes in it
};

// A decimal integer as a program would write it: no sign but '-', no leading zeros, within int64. "007" is not one: it
// may be somebody's name for a node.
std::optional<int64_t> parse_integer(std::string_view text);
// A finite or other number ("1e-3", "+2", "nan"); nothing if it is not one.
std::optional<double> parse_number(std::string_view text);
// The same as float32; an Error at the reader's line if it is no number, not finite, or beyond float32.
float parse_finite(std::string_view text, const LineReader& at, const char* what);

// Reads digits at `at`, leaving it behind them. False if there is no digit or the value exceeds 18 digits.
inline bool read_digits(const char*& at, const char* end, uint64_t& value) {
  const char* begin = at;
  uint64_t sum = 0;
  for (; at < end && static_cast<unsigned char>(*at - '0') < 10; ++at)
    sum = sum * 10 + static_cast<uint64_t>(*at - '0');
  value = sum;
  const auto digits = at - begin;
  return digits > 0 && digits <= 18 && (digits == 1 || *begin != '0');
}

std::string lower_case(std::string_view text);
// A field as it can be shown in a message: in quotes, cut if long, control characters as '?'.
std::string show(std::string_view field);

}  // namespace cgcn
