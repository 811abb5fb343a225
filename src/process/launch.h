// How the process came to be part of a job: mpirun, mpiexec, srun and other PMI or PMIx launchers tell it in its
// environment. If it is one of several, MPI is opened (libclustergcn-mpi.so), and they are a group.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/options.h"
#include "dist/group.h"

namespace cgcn::dist {

struct Launch {
  std::string launcher;  // "mpirun"; empty: started by itself
  uint32_t rank = 0;
  uint32_t size = 1;  // 0: the launcher does not say

  bool is_alone() const { return launcher.empty() || size == 1; }
};

// environment(name): the variable's value, or null.
Launch detect_launch(const std::function<const char*(const char*)>& environment);
Launch detect_launch();  // of this process

// --peer-timeout, for the commands that run in a group.
struct GroupOptions {
  uint32_t peer_timeout = 300;  // seconds

  void list_options(OptionList& list);
};

// The group that this process was started in; of one if it was started by itself. Error if the plugin is missing,
// or if MPI does not see the processes that the launcher started.
Group join_group(const GroupOptions& options);

// Thrown at the end of ranks other than 0, which have nothing to say: the status to exit with.
struct SilentExit {
  int status;
};

// Runs work(group) in the group of this process, and ends all its ranks alike. Rank 0 alone prints and listens to
// Ctrl-C; what it throws is thrown here. A rank that fails by itself ends the job with one message.
void run_in_group(const GroupOptions& options, const std::function<void(Group&)>& work);

// For what runs in one process: Error if a launcher started several. CLUSTERGCN_ALONE=1 says that each is to work by
// itself.
void require_alone(const std::string& what, const std::string& hint = {});

}  // namespace cgcn::dist
