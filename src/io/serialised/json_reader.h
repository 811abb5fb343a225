// JSON read front to back from a mapped file, value by value, in no more memory than one string: files of edges are
// larger than what they describe, so no tree and no index of them is made. Pages that were passed are let go.
//
//   reader.enter_object();
//   for (std::string_view key; reader.next_key(key);) key == "nodes" ? read_nodes(reader) : reader.skip();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/file.h"
#include "common/progress.h"

namespace cgcn {

class JsonReader {
 public:
  enum class Kind { kObject, kArray, kText, kNumber, kTrue, kFalse, kNull };

  explicit JsonReader(const fs::path& path);

  Kind peek();  // what the next value is
  void enter_object();
  bool next_key(std::string_view& key);  // false, and the object is left, at its end
  void enter_array();
  bool next_element();  // the same
  std::string_view read_text();
  // A number as it is written ("12", "-1.5e3", NaN as Python writes it), or a text: what ids can be.
  std::string_view read_word();
  double read_number();
  bool read_flag();  // true or false; null and 0 count as false, other numbers as true
  void skip();
  void finish();  // nothing but blanks may follow

  // The place of the value that comes next, to return to.
  struct Mark {
    size_t offset = 0, depth = 0;
  };
  Mark mark();
  void return_to(const Mark& mark);
  std::string where() const;
  [[noreturn]] void fail(const std::string& problem, const std::string& hint = {}) const;

 private:
  size_t offset() const { return static_cast<size_t>(at_ - text_.data()); }
  void skip_blanks() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  char look() {  // the next character that is not blank
    skip_blanks();
    if (at_ == end_) fail_at_end();
    return *at_;
  }
  void expect(char c, const char* what);
  bool next_member(char close);  // a comma, the first member, or the end
  std::string_view read_escaped(const char* begin);
  void read_unicode_escape();
  uint32_t read_hex4();
  [[noreturn]] void fail_at_end() const;
  void let_go();

  MappedFile file_;
  std::string_view text_;
  const char* at_;
  const char* end_;
  std::vector<char> first_;  // for each container that is open: whether no member was read yet
  std::string unescaped_;
  size_t released_ = 0;
  Progress progress_;
};

}  // namespace cgcn
