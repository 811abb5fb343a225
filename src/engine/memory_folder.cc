#include "engine/memory_folder.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/error.h"
#include "common/log.h"
#include "common/memory.h"

namespace cgcn {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kPrefix = "clustergcn-";
constexpr const char* kLock = "lock";

fs::path make_folder(const fs::path& parent) {
  std::string name = (parent / (std::string(kPrefix) + "XXXXXX")).string();
  return ::mkdtemp(name.data()) != nullptr ? fs::path(name) : fs::path();
}

// What killed processes left: folders of this user whose lock nobody holds. A new one may not have its lock yet.
void remove_abandoned(const fs::path& parent) {
  constexpr time_t kNewSeconds = 60;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(parent, problem)) {
    struct stat status {};
    if (!entry.path().filename().string().starts_with(kPrefix) || ::lstat(entry.path().c_str(), &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || ::time(nullptr) - status.st_mtime < kNewSeconds)
      continue;
    const FileDescriptor lock(entry.path() / kLock, O_RDONLY);
    if (lock.is_open() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), problem);
  }
}

}  // namespace

MemoryFolder::MemoryFolder(uint64_t bytes) : maker_(::getpid()) {
  std::error_code problem;
  remove_abandoned(kSharedMemory);
  if (fs::is_directory(kSharedMemory, problem) && free_disk_space(kSharedMemory) > bytes)
    path_ = make_folder(kSharedMemory);
  if (path_.empty()) {
    const fs::path scratch = scratch_folder();
    log::note("{} cannot take {}: using {} instead", kSharedMemory, format_bytes(bytes), scratch.string());
    path_ = make_folder(scratch);
    if (path_.empty()) throw Error(fmt::format("cannot make a folder: {}", std::strerror(errno)), scratch.string());
  }
  lock_ = FileDescriptor(path_ / kLock, O_RDWR | O_CREAT);
  if (lock_.is_open()) ::flock(lock_.get(), LOCK_SH);
}

MemoryFolder::~MemoryFolder() {
  if (::getpid() != maker_) return;  // a forked process: its parent still uses it
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace cgcn
