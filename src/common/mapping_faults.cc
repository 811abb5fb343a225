#include "common/mapping_faults.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "common/error.h"

namespace cgcn {
namespace {

struct Mapping {
  std::atomic<const std::byte*> data = nullptr;  // set last
  size_t bytes = 0;
  struct stat file {};
  std::array<char, 1024> path{};  // with a zero at its end
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
};

std::array<Mapping, 128> mappings;
std::mutex table_mutex;  // of threads that change or check the table; the signal handler cannot wait for it

}  // namespace

void watch_mapping(const void* data, const struct stat& file, const std::filesystem::path& path) {
  const std::lock_guard lock(table_mutex);
  for (Mapping& mapping : mappings) {
    if (mapping.taken.test_and_set()) continue;
    const std::string& text = path.native();
    const size_t length = std::min(text.size(), mapping.path.size() - 1);
    std::copy_n(text.data(), length, mapping.path.data());
    mapping.path[length] = '\0';
    mapping.bytes = static_cast<size_t>(file.st_size);
    mapping.file = file;
    mapping.data.store(static_cast<const std::byte*>(data), std::memory_order_release);
    return;
  }
}

void forget_mapping(const void* data) {
  const std::lock_guard lock(table_mutex);
  for (Mapping& mapping : mappings) {
    if (mapping.data.load(std::memory_order_relaxed) != data) continue;
    mapping.data.store(nullptr, std::memory_order_release);
    mapping.taken.clear();
    return;
  }
}

const char* find_mapping(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (const Mapping& mapping : mappings) {
    const std::byte* data = mapping.data.load(std::memory_order_acquire);
    if (data != nullptr && at >= data && at < data + mapping.bytes) return mapping.path.data();
  }
  return nullptr;
}

void check_mappings() {
  const std::lock_guard lock(table_mutex);
  for (const Mapping& mapping : mappings) {
    struct stat now {};
    if (mapping.data.load(std::memory_order_acquire) == nullptr || ::stat(mapping.path.data(), &now) != 0) continue;
    const bool same_file = now.st_dev == mapping.file.st_dev && now.st_ino == mapping.file.st_ino;
    if (same_file && !is_unchanged(mapping.file, now))
      throw Error(
          now.st_size < mapping.file.st_size ? "was cut short while it was in use" : "was changed while it was in use",
          mapping.path.data(), kChangedFileHint);
  }
}

bool is_unchanged(const struct stat& before, const struct stat& now) {
  return now.st_size == before.st_size && now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
}

}  // namespace cgcn
