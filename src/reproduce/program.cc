#include "reproduce/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "common/error.h"
#include "common/interrupt.h"

extern char** environ;

namespace cgcn {
namespace {

std::string last_line(const fs::path& log) {
  std::string text = read_text_file(log), message;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find("error") != std::string::npos || message.empty()) message = line;
    begin = end + 1;
  }
  return message;
}

}  // namespace

void run_program(const fs::path& program, const std::vector<std::string>& arguments, const fs::path& output) {
  fs::path log = output;
  log += ".log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // A group of its own: Ctrl-C reaches the child once, from here, and it saves. Twice would end it at once.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, program.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) throw Error(fmt::format("cannot be started: {}", std::strerror(failure)), program.string());
  int status = 0;
  bool told = false;
  for (pid_t ended = 0; ended != child;) {
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR)
      throw Error(fmt::format("its end cannot be waited for: {}", std::strerror(errno)), program.string());
    if (ended == child) break;
    if (interrupted() && !told) {
      ::kill(child, SIGINT);
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw_if_interrupted();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw Error(fmt::format("failed: {}", last_line(log)), fmt::format("clustergcn {}", fmt::join(arguments, " ")),
              "see " + log.string());
}

}  // namespace cgcn
