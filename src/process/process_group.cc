#include "process/process_group.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "common/hash.h"
#include "common/log.h"
#include "common/threads.h"
#include "kernels/instruction_sets.h"

namespace cgcn {
namespace {

// The program as a file: the same version may have been built differently.
std::string describe_program() {
  Hasher hasher;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hasher.add(piece.data(), static_cast<size_t>(file.gcount()));
  return fmt::format("{} (build {})", CGCN_VERSION, hex64(hasher.digest64()));
}

// Ranks on different processors would round differently: all use what all have.
void agree_on_instructions(dist::Group& group) {
  const kernels::InstructionSets own = group.together([] { return kernels::own_instruction_sets(); });
  group.require_same("the version of OpenBLAS", own.blas_version, "install the same on every host");
  const std::vector<int64_t> targets = group.all_gather_values(own.vector_targets);
  const std::vector<std::string> cores = group.all_gather(own.blas_core);
  std::vector<kernels::InstructionSets> all;
  for (uint32_t r = 0; r < group.size(); ++r) all.push_back({targets[r], cores[r], own.blas_version});
  const kernels::InstructionSets common = kernels::common_instruction_sets(all);
  if (std::any_of(all.begin(), all.end(), [&](const auto& sets) { return sets != common; }))
    log::note("processors differ: all processes compute as the oldest one can ({})", common.blas_core);
  group.together([&] { kernels::use_instruction_sets(common); });
}

// Ranks that a launcher bound to cores of their own have these; others share what they have.
void share_cores(dist::Group& group, uint32_t threads) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ::sched_getaffinity(0, sizeof mask, &mask);
  const std::vector<cpu_set_t> masks = group.all_gather_values(mask);
  int sharing = 0;
  for (uint32_t r = 0; r < group.size(); ++r)
    if (group.host(r) == group.host(group.rank()) && CPU_EQUAL(&masks[r], &mask)) ++sharing;
  if (threads == 0) set_thread_count(std::max(1, usable_cores() / sharing));
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const int all = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)) / static_cast<int>(group.ranks_on_this_host());
  if (threads == 0 && cores < all)
    log::note("the launcher bound this process to {} of {} cores; mpirun --bind-to none leaves them free", cores, all);
}

}  // namespace

void run_in_group(const dist::GroupOptions& options, uint32_t threads,
                  const std::function<void(dist::Group& group)>& work) {
  dist::run_in_group(options, [&](dist::Group& group) {
    if (group.size() > 1) {
      group.require_same("the version of clustergcn", describe_program(), "install the same on every host");
      agree_on_instructions(group);
      share_cores(group, threads);
    }
    work(group);
  });
}

}  // namespace cgcn
