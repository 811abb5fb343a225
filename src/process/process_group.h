// The processes that a launcher such as mpirun started, as one group that computes alike.
#pragma once

#include <functional>

#include "process/launch.h"

namespace cgcn {

// Runs work(group) in the group of processes that a launcher started, or alone. Ranks that differ in what they would
// compute are refused, or agree; they share the cores of their machine. threads: of this process; 0: its share.
void run_in_group(const dist::GroupOptions& options, uint32_t threads,
                  const std::function<void(dist::Group& group)>& work);

}  // namespace cgcn
