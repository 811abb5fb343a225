#include "common/error.h"

namespace cgcn {
namespace {

std::string join(const std::string& what, const std::string& where, const std::string& hint) {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += "\n  try: " + hint;
  return text;
}

}  // namespace

Error::Error(std::string what, std::string where, std::string hint)
    : std::runtime_error(join(what, where, hint)),
      problem_(std::move(what)),
      where_(std::move(where)),
      hint_(std::move(hint)) {}

void fail_check(const char* condition, const char* file, int line, const std::string& detail) {
  throw std::logic_error(
      fmt::format("internal check failed: {} ({}:{}){}{}", condition, file, line, detail.empty() ? "" : ": ", detail));
}

}  // namespace cgcn
