#include "common/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "common/error.h"
#include "common/session.h"

namespace cgcn::log {
namespace {
std::atomic<Level> current_level{Level::kNormal};
thread_local int silences = 0;
}  // namespace

Silence::Silence() { ++silences; }
Silence::~Silence() { --silences; }

void set_level(Level level) { current_level = level; }
Level level() {
  if (silences > 0) return Level::kQuiet;
  return Session::current() != nullptr ? Level::kNormal : current_level.load();
}
bool is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal;
}
bool shows_colour(int descriptor) {
  const auto variable = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  return variable("NO_COLOR").empty() && variable("TERM") != "dumb" && isatty(descriptor) != 0;
}

namespace {

// "error: …" and so on with the word in colour.
std::string coloured(std::string line) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"error:", "\x1b[1;31m"}, {"warning:", "\x1b[1;33m"}, {"hint:", "\x1b[1;36m"}, {"note:", "\x1b[1m"}};
  for (const auto& [word, colour] : kWords)
    if (line.starts_with(word)) return line.insert(word.size(), "\x1b[0m").insert(0, colour);
  return line;
}

}  // namespace

void write_line(std::string_view text) {
  if (const Session* session = Session::current()) return session->write_line(quoted(text, text.size()));
  static const bool colour = shows_colour(STDERR_FILENO);
  std::string line = is_terminal() ? "\r\x1b[K" : "";
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string shown = quoted(text.substr(begin, end - begin), end - begin);
    line.append(colour ? coloured(shown) : shown).push_back('\n');
    begin = end + 1;
  }
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace cgcn::log
