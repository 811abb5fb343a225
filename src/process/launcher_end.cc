#include "process/launcher_end.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace cgcn::dist {
namespace {

constexpr std::array<std::string_view, 9> kLauncherNames = {
    "mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "prte", "mpiexec.hydra", "hydra_pmi_proxy"};

// Not SIGTERM: Open MPI's mpirun, which is ending the job already, would wait on, and crash at a second one. The
// process is looked at again before it is ended.
constexpr const char* kScript = "sleep 3; [ \"$(cat /proc/$1/comm 2>/dev/null)\" = \"$2\" ] && kill -KILL $1";

std::string name_of_process(pid_t process) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/comm"), name);
  return name;
}

pid_t parent_of(pid_t process) {
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), line);
  const size_t end_of_name = line.rfind(") ");  // then: state, parent
  if (end_of_name == std::string::npos || end_of_name + 4 >= line.size()) return 0;
  return static_cast<pid_t>(std::atoi(line.c_str() + end_of_name + 4));
}

}  // namespace

std::optional<LauncherProcess> find_launcher(pid_t process) {
  constexpr int kMostAncestors = 4;  // a script or a tool may lie between
  for (int i = 0; i < kMostAncestors; ++i) {
    process = parent_of(process);
    if (process <= 1) return std::nullopt;
    const std::string name = name_of_process(process);
    if (std::find(kLauncherNames.begin(), kLauncherNames.end(), name) != kLauncherNames.end())
      return LauncherProcess{process, name};
  }
  return std::nullopt;
}

// In a session of its own and without this process's files: the launcher neither ends it nor waits for it.
void end_later(const LauncherProcess& launcher) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  if (::posix_spawnattr_init(&attributes) != 0) return;
  if (::posix_spawn_file_actions_init(&files) == 0) {
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    for (const int stream : {0, 1, 2}) ::posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
    std::string shell = "sh", option = "-c", script = kScript, number = std::to_string(launcher.process),
                name = launcher.name;
    const std::array<char*, 7> words = {shell.data(),  option.data(), script.data(), shell.data(),
                                        number.data(), name.data(),   nullptr};
    pid_t spawned = 0;
    ::posix_spawn(&spawned, "/bin/sh", &files, &attributes, words.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
  }
  ::posix_spawnattr_destroy(&attributes);
}

}  // namespace cgcn::dist
