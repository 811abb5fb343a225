// How many cores the process may use, as the kernel tells it: containers limit them by a mask (cpuset) or by a quota of
// time.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/threads.h"

namespace cgcn {
namespace {

int cores_in_mask() {
  for (int size = 1024; size <= 1 << 20; size *= 4) {  // the kernel refuses a mask that is smaller than its own
    cpu_set_t* mask = CPU_ALLOC(size);
    if (mask == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const int count = ::sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// The folder of a control group and those around it, up to where the hierarchy is mounted.
std::vector<fs::path> with_parents(const fs::path& mounted, const std::string& group) {
  std::vector<fs::path> folders{mounted};
  for (const fs::path& name : fs::path(group).relative_path()) folders.push_back(folders.back() / name);
  return folders;
}

// Cores' worth of time that one group allows; 0: no limit. Version 2 has "quota period" or "max period" in one file,
// version 1 two files, with -1 for no limit.
double quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream both(group / "cpu.max"), first(group / "cpu.cfs_quota_us"), second(group / "cpu.cfs_period_us");
  if (!(both >> quota >> period) && !(first >> quota && second >> period)) return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

double least_quota(const fs::path& root) {
  std::vector<fs::path> groups;
  const auto add = [&](const fs::path& mounted, const std::string& group) {
    const auto found = with_parents(root / "sys/fs/cgroup" / mounted, group);
    groups.insert(groups.end(), found.begin(), found.end());
  };
  add("", "");
  std::ifstream file(root / "proc/self/cgroup");  // lines "number:controllers:/group"
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    std::stringstream names(controllers);
    if (controllers.empty()) add("", group);
    for (std::string name; std::getline(names, name, ',');)
      if (name == "cpu")
        for (const std::string& mounted : {controllers, name}) add(mounted, group);
  }
  double least = 0;
  for (const fs::path& group : groups)
    if (const double quota = quota_of(group); quota > 0 && (least == 0 || quota < least)) least = quota;
  return least;
}

}  // namespace

int usable_cores(const fs::path& root) {
  const int cores = cores_in_mask();
  const double quota = least_quota(root);
  return quota > 0 ? std::clamp(static_cast<int>(std::lround(quota)), 1, cores) : cores;
}

}  // namespace cgcn
