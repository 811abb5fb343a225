// Lines to stderr for people: notes, warnings. Results go to stdout, through print(), so that a pipe gets only them.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace cgcn::log {

enum class Level { kQuiet, kNormal };

void set_level(Level level);
Level level();

// Notes and progress of this thread are left out while it lives; warnings are not.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
};

bool is_terminal();                 // whether stderr is one
bool shows_colour(int descriptor);  // a terminal, and neither NO_COLOR nor TERM=dumb is set

// Clears a progress line that is being shown first. Control characters but the line ending are escaped.
void write_line(std::string_view text);

template <class... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  if (level() == Level::kNormal) write_line(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write_line("warning: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cgcn::log
