#include "common/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace cgcn::log {
namespace {
std::atomic<Level> current_level{Level::kNormal};
}  // namespace

void set_level(Level level) { current_level = level; }
Level level() { return current_level; }
bool is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal;
}

void write_line(std::string_view text) {
  std::string line = is_terminal() ? "\r\x1b[K" : "";
  line.append(text).push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace cgcn::log
