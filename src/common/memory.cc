#include "common/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "common/error.h"

namespace cgcn {
namespace {

// A line "Key:   123 kB" of a /proc file, in bytes; 0 if it is missing.
uint64_t proc_value(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':')
      return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
  return 0;
}

uint64_t group_value(const fs::path& file_path) {
  std::ifstream file(file_path);
  uint64_t value = 0;
  return file >> value ? value : 0;  // "max" does not parse and means no limit
}

// A control group's folder and what its files are called, which differs between the two versions.
struct ControlGroup {
  fs::path folder;
  const char *limit, *usage, *active, *inactive;  // files, and the page cache's two names in memory.stat

  uint64_t limit_bytes() const {
    constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes the largest number of pages
    const uint64_t bytes = group_value(folder / limit);
    return bytes < kNoLimit ? bytes : 0;
  }
  // Without the page cache, which the kernel takes back if memory is short.
  uint64_t used_bytes() const {
    uint64_t cached = 0, value = 0;
    std::ifstream file(folder / "memory.stat");
    for (std::string name; file >> name >> value;)
      if (name == active || name == inactive) cached += value;
    const uint64_t current = group_value(folder / usage);
    return current - std::min(current, cached);
  }
};

// The process's control group and those around it, each of which may have a limit. If the group's own folder is not
// to be seen, as in some containers, what is there is the outermost one. A machine may have both versions at once.
std::vector<ControlGroup> control_groups(const fs::path& root) {
  const fs::path mounted = root / "sys/fs/cgroup";
  const ControlGroup second{{}, "memory.max", "memory.current", "active_file", "inactive_file"};
  const ControlGroup first{
      {}, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"};
  std::vector<ControlGroup> groups;
  const auto add = [&](ControlGroup group, fs::path folder, const std::string& path) {
    group.folder = folder;
    groups.push_back(group);
    for (const fs::path& name : fs::path(path)) groups.emplace_back(group).folder = folder /= name;
  };
  std::string of_second, of_first;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:/path
    const size_t controllers = line.find(':'), path = line.find(":/", controllers + 1);
    if (controllers == std::string::npos || path == std::string::npos) continue;
    const std::string named = "," + line.substr(controllers + 1, path - controllers - 1) + ",";
    if (line.starts_with("0::")) of_second = line.substr(path + 2);
    if (named.find(",memory,") != std::string::npos) of_first = line.substr(path + 2);
  }
  add(second, mounted, of_second);
  add(first, mounted / "memory", of_first);
  return groups;
}

}  // namespace

MemoryFigures memory_figures() {
  constexpr const char* kStatus = "/proc/self/status";
  return {.peak_rss = proc_value(kStatus, "VmHWM"),
          .rss = proc_value(kStatus, "VmRSS"),
          .anonymous = proc_value(kStatus, "RssAnon"),
          .file_backed = proc_value(kStatus, "RssFile") + proc_value(kStatus, "RssShmem")};
}

void reset_peak_rss() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
}

void prefer_huge_pages(void* begin, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(begin) + bytes) / kPage * kPage;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

uint64_t total_memory(const fs::path& root) {
  uint64_t total = proc_value(root / "proc/meminfo", "MemTotal");
  for (const ControlGroup& group : control_groups(root))
    if (const uint64_t limit = group.limit_bytes()) total = std::min(total, limit);
  return total;
}

uint64_t available_memory(const fs::path& root) {
  uint64_t available = proc_value(root / "proc/meminfo", "MemAvailable");
  for (const ControlGroup& group : control_groups(root)) {
    const uint64_t limit = group.limit_bytes(), used = limit > 0 ? group.used_bytes() : 0;
    if (limit > 0) available = std::min(available, limit > used ? limit - used : 0);
  }
  return available;
}

uint64_t parse_bytes(std::string_view text, const std::string& where) {
  const auto bad = [&] {
    return Error(fmt::format("'{}' is not a size", text), where, "a number with K, M, G or T, such as 2G or 2200M");
  };
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || !(value >= 0)) throw bad();
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  double scale = 1;
  if (!unit.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const size_t power = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    if (power != std::string_view::npos) {
      scale = std::pow(1024.0, static_cast<double>(power + 1));
      unit.remove_prefix(1);
      if (unit.starts_with('i')) unit.remove_prefix(1);
    }
    if (unit == "B" || unit == "b") unit.remove_prefix(1);
    if (!unit.empty()) throw bad();
  }
  const double bytes = value * scale;
  if (bytes >= 0x1p63) throw bad();
  return static_cast<uint64_t>(bytes);
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 || value >= 99.95 ? fmt::format("{:.0f} {}", value, kUnits[unit])
                                     : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace cgcn
