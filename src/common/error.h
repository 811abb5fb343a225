// The one error that users see, and the one check for our own bugs.
//
// Error says what happened, where (a file, a line of it, an option) and what to try; main() prints it in one place and
// exits non-zero. CGCN_CHECK is for states that only a bug of ours can reach; it is on in every build.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace cgcn {

class Error : public std::runtime_error {
 public:
  // where: a path, "path:line" or "--option"; empty where there is none. hint: what to try; empty where nothing helps.
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
