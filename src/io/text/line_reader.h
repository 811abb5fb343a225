// Text of any size, plain or gzip, read front to back line by line in bounded memory.
//
// What editors and spreadsheets leave behind is taken off here, once for every format: a byte order mark, carriage
// returns (one alone ends a line), blanks at the end, a missing last line ending. A cut or damaged gzip stream is an
// Error, never a short file.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/buffer.h"
#include "common/error.h"
#include "common/file.h"
#include "common/progress.h"

namespace cgcn {

class LineReader {
 public:
  explicit LineReader(const fs::path& path);

  // The next line without its ending; false at the end of the file. The view holds until the next call.
  bool next(std::string_view& line);
  // The same, passing over lines of nothing but blanks, and at the top of the file over those that begin with '#'.
  // Further down such a line is an Error: it may be a comment or an id.
  bool next_content(std::string_view& line);

  uint64_t line_number() const { return line_number_; }
  const fs::path& path() const { return path_; }
  std::string where() const;  // "edges.csv:12"
  [[noreturn]] void fail(const std::string& problem, const std::string& hint = {}) const;

 private:
  bool refill();  // more text behind end_; false if there is none
  void end_lines_at_returns(size_t from);
  void start();  // byte order mark

  struct Closer {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  fs::path path_;
  std::unique_ptr<gzFile_s, Closer> file_;
  Progress progress_;
  Buffer<char> buffer_;
  size_t at_ = 0, end_ = 0;  // unread text is buffer_[at_ … end_)
  uint64_t line_number_ = 0;
  bool has_content_ = false;  // next_content() has returned a line
};

// path, or path with ".gz" behind it, whichever exists; empty if neither does.
fs::path find_plain_or_gzip(const fs::path& path);

}  // namespace cgcn
