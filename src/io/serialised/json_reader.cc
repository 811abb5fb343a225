#include "io/serialised/json_reader.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"
#include "common/interrupt.h"
#include "io/numpy/array.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

constexpr size_t kReleaseEvery = size_t{8} << 20;
constexpr size_t kDeepest = 256;

bool ends_word(char c) { return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

JsonReader::JsonReader(const fs::path& path)
    : file_(path), text_(file_.text()), progress_("reading " + path.filename().string(), text_.size(), "bytes") {
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    throw Error("is UTF-16 text", path.string(), "save it as UTF-8");
  at_ = text_.data();
  end_ = at_ + text_.size();
  if (text_.starts_with("\xEF\xBB\xBF")) at_ += 3;
}

JsonReader::Kind JsonReader::peek() {
  switch (look()) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kText;
    case 't':
      return Kind::kTrue;
    case 'f':
      return Kind::kFalse;
    case 'n':
      return Kind::kNull;
    default:
      return Kind::kNumber;
  }
}

void JsonReader::expect(char c, const char* what) {
  if (look() != c) fail(fmt::format("{} expected, not {}", what, show({at_, 1})));
  ++at_;
}

void JsonReader::enter_object() {
  expect('{', "an object {…}");
  if (first_.size() == kDeepest) fail("nested too deeply");
  first_.push_back(1);
}
void JsonReader::enter_array() {
  expect('[', "a list […]");
  if (first_.size() == kDeepest) fail("nested too deeply");
  first_.push_back(1);
}

bool JsonReader::next_member(char close) {
  const char c = look();
  if (c == close) {
    ++at_;
    first_.pop_back();
    return false;
  }
  if (first_.back() == 0) {
    if (c != ',') fail(fmt::format("',' or '{}' expected, not {}", close, show({at_, 1})));
    ++at_;
  }
  first_.back() = 0;
  if (offset() - released_ > kReleaseEvery) let_go();
  return true;
}

bool JsonReader::next_key(std::string_view& key) {
  if (!next_member('}')) return false;
  key = read_text();
  expect(':', "':' after a key");
  return true;
}

bool JsonReader::next_element() { return next_member(']'); }

std::string_view JsonReader::read_text() {
  expect('"', "a quoted text");
  const char* begin = at_;
  // Keys and ids are short: a loop beats a call here.
  while (at_ < end_ && *at_ != '"' && *at_ != '\\') ++at_;
  if (at_ == end_) fail_at_end();
  if (*at_ == '\\') return read_escaped(begin);
  return {begin, static_cast<size_t>(at_++ - begin)};
}

std::string_view JsonReader::read_escaped(const char* begin) {
  unescaped_.assign(begin, at_);
  for (;;) {
    if (at_ == end_) fail_at_end();
    const char c = *at_++;
    if (c == '"') return unescaped_;
    if (c != '\\') {
      unescaped_.push_back(c);
      continue;
    }
    if (at_ == end_) fail_at_end();
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char letter = *at_++;
    if (letter == 'u') {
      read_unicode_escape();
    } else if (const size_t i = kLetters.find(letter); i != std::string_view::npos) {
      unescaped_.push_back(kMeanings[i]);
    } else {
      fail("unknown escape in a text");
    }
  }
}

uint32_t JsonReader::read_hex4() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    if (at_ == end_) fail_at_end();
    const char c = *at_;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail("four hexadecimal digits expected after \\u");
    value = value << 4 | static_cast<uint32_t>(digit);
    ++at_;
  }
  return value;
}

void JsonReader::read_unicode_escape() {
  uint32_t c = read_hex4();
  if (c >= 0xD800 && c < 0xDC00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
    at_ += 2;
    const uint32_t low = read_hex4();
    if (low < 0xDC00 || low >= 0xE000) fail("broken pair of \\u escapes");
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
  }
  if (c >= 0xD800 && c < 0xE000) fail("half a pair of \\u escapes");
  append_utf8(unescaped_, c);
}

std::string_view JsonReader::read_word() {
  const char c = look();
  if (c == '"') return read_text();
  if (c == '{' || c == '[') fail("a text or a number expected");
  const char* begin = at_;
  while (at_ < end_ && !ends_word(*at_)) ++at_;
  if (at_ == end_) fail_at_end();  // a document never ends within a value that somebody asked for
  if (at_ == begin) fail(fmt::format("a value expected, not {}", show({begin, 1})));
  return {begin, static_cast<size_t>(at_ - begin)};
}

double JsonReader::read_number() {
  skip_blanks();
  const char* begin = at_;
  const std::string_view word = read_word();
  if (word == "true") return 1;
  if (word == "false") return 0;
  const std::optional<double> value = *begin == '"' ? std::nullopt : parse_number(word);
  if (!value) {
    at_ = begin;
    fail(fmt::format("a number expected, not {}", show(word)));
  }
  return *value;
}

bool JsonReader::read_flag() {
  if (peek() != Kind::kNull) return read_number() != 0;
  read_word();
  return false;
}

void JsonReader::skip() {
  std::string open;  // closing brackets that are due
  do {
    const char c = look();
    if (c == '{' || c == '[') {
      ++at_;
      if (open.size() >= kDeepest) fail("nested too deeply");
      open.push_back(c == '{' ? '}' : ']');
      if (offset() - released_ > kReleaseEvery) let_go();
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != c) fail(fmt::format("unexpected '{}'", c));
      ++at_;
      open.pop_back();
    } else if (c == ',' || c == ':') {
      if (open.empty()) fail(fmt::format("unexpected '{}'", c));
      ++at_;
    } else if (c == '"') {
      read_text();
    } else {
      while (at_ < end_ && !ends_word(*at_) && *at_ != ':') ++at_;
    }
  } while (!open.empty());
}

void JsonReader::finish() {
  skip_blanks();
  if (at_ != end_)
    fail(fmt::format("text follows the end: {}", show({at_, std::min<size_t>(10, static_cast<size_t>(end_ - at_))})));
}

JsonReader::Mark JsonReader::mark() {
  look();
  return {offset(), first_.size()};
}

void JsonReader::return_to(const Mark& mark) {
  at_ = text_.data() + mark.offset;
  first_.resize(mark.depth, 0);  // the value is a member, so that those around it have one
  released_ = std::min(released_, mark.offset);
}

void JsonReader::let_go() {
  throw_if_interrupted();
  progress_.set(offset());
  file_.release(released_, offset() - released_);
  released_ = offset();
}

std::string JsonReader::where() const {
  const auto line = 1 + std::count(text_.data(), at_, '\n');
  return fmt::format("{}:{}", file_.path().string(), line);
}

void JsonReader::fail(const std::string& problem, const std::string& hint) const {
  throw Error(fmt::format("{} (at byte {})", problem, offset()), where(), hint);
}

void JsonReader::fail_at_end() const {
  if (text_.empty()) throw Error("is empty", file_.path().string());
  fail("the file is cut off", "copy or download it again");
}

}  // namespace cgcn
