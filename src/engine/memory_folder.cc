#include "engine/memory_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/error.h"
#include "common/log.h"
#include "common/memory.h"

namespace cgcn {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";

fs::path make_folder(const fs::path& parent) {
  std::string name = (parent / "clustergcn-XXXXXX").string();
  return ::mkdtemp(name.data()) != nullptr ? fs::path(name) : fs::path();
}

}  // namespace

MemoryFolder::MemoryFolder(uint64_t bytes) {
  std::error_code problem;
  const bool shared = fs::is_directory(kSharedMemory, problem) && free_disk_space(kSharedMemory) > bytes;
  if (shared) path_ = make_folder(kSharedMemory);
  if (!path_.empty()) return;
  const fs::path scratch = scratch_folder();
  log::note("{} has no room for {}: it goes to {} until the graph is let go", kSharedMemory, format_bytes(bytes),
            scratch.string());
  path_ = make_folder(scratch);
  if (path_.empty()) throw Error(fmt::format("cannot make a folder: {}", std::strerror(errno)), scratch.string());
}

MemoryFolder::~MemoryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace cgcn
