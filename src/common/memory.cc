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

// A line "Key:   123 kB" of a /proc file, in bytes; 0 where it is not there.
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

// The process's control group and those around it, each of which may have a limit. Where the group's own folder is not
// to be seen, as in some containers, what is there is the outermost one.
std::vector<fs::path> control_groups(const fs::path& root) {
  const fs::path outermost = root / "sys/fs/cgroup";
  std::vector<fs::path> groups{outermost};
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::/")) continue;
    for (const fs::path& name : fs::path(line.substr(4))) groups.push_back(groups.back() / name);
  }
  return groups;
}

// Without the page cache, which the kernel takes back where memory is short.
uint64_t used_by_group(const fs::path& group) {
  uint64_t cached = 0, value = 0;
  std::ifstream file(group / "memory.stat");
  for (std::string name; file >> name >> value;)
    if (name == "active_file" || name == "inactive_file") cached += value;
  const uint64_t current = group_value(group / "memory.current");
  return current - std::min(current, cached);
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
  for (const fs::path& group : control_groups(root))
    if (const uint64_t limit = group_value(group / "memory.max")) total = std::min(total, limit);
  return total;
}

uint64_t available_memory(const fs::path& root) {
  uint64_t available = proc_value(root / "proc/meminfo", "MemAvailable");
  for (const fs::path& group : control_groups(root)) {
    const uint64_t limit = group_value(group / "memory.max"), used = used_by_group(group);
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
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
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
