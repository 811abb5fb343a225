// The one error that users see, and the one check for our own bugs.
//
// Error says what happened, where (a file, a line of it, an option) and what to try; main() prints it in one place and
// exits non-zero. CGCN_CHECK is for states that only a bug of ours can reach; it is on in every build.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace cgcn {

// A file's content as a message shows it: so many bytes at most, and control characters escaped.
inline constexpr size_t kMostQuoted = 200;
std::string quoted(std::string_view text, size_t most = kMostQuoted);

class Error : public std::runtime_error {
 public:
  // where: a path, "path:line" or "--option"; empty if there is none. hint: what to try; empty if nothing helps.
  // what() is one line each, without control characters, however long and odd the file is that they quote.
  explicit Error(std::string what, std::string where = {}, std::string hint = {});

  const std::string& problem() const { return problem_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string problem_, where_, hint_;
};

// Thrown when the user pressed Ctrl-C (see interrupt.h) and the work in hand has been undone or saved.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(const std::string& what) : std::runtime_error(what) {}
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace cgcn

#define CGCN_CHECK(condition, ...)                                                                           \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]]                                                                           \
      ::cgcn::fail_check(#condition, __FILE__, __LINE__, std::string{__VA_OPT__(fmt::format(__VA_ARGS__))}); \
  } while (0)
