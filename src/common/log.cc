#include "common/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>

#include "common/error.h"
#include "common/session.h"

namespace cgcn::log {
namespace {
std::atomic<Level> current_level{Level::kNormal};
}  // namespace

void set_level(Level level) { current_level = level; }
Level level() { return Session::current() != nullptr ? Level::kNormal : current_level.load(); }
bool is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal;
}

void write_line(std::string_view text) {
  if (const Session* session = Session::current()) return session->write_line(quoted(text, text.size()));
  std::string line = is_terminal() ? "\r\x1b[K" : "";
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    line.append(quoted(text.substr(begin, end - begin), end - begin)).push_back('\n');
    begin = end + 1;
  }
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

// Writing to a closed stdout fails, as it did: the file in its place is open for reading only.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) != stream)
      ::_exit(1);  // lower numbers are taken by now, so it gets this one
}

}  // namespace cgcn::log
