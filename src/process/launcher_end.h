// The end of a launcher that would wait for a machine that is gone.
//
// mpirun and its daemons end a job by asking every machine, and wait for the answers: a machine that was cut off gives
// none until TCP gives up (8 minutes with Open MPI's settings). So the rank that ends a job because another one is
// silent leaves a shell behind, which ends the launcher on this machine if it is still there some seconds later.
// Slurm's daemons are left alone: they know by themselves which nodes are down.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace cgcn::dist {

struct LauncherProcess {
  pid_t process;
  std::string name;  // "mpirun", "orted"
};

// The nearest ancestor of a process that is a launcher or its daemon.
std::optional<LauncherProcess> find_launcher(pid_t process);

// Returns at once.
void end_later(const LauncherProcess& launcher);

}  // namespace cgcn::dist
