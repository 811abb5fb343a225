#include "common/scratch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/memory.h"

namespace cgcn {

std::shared_ptr<std::byte> make_scratch(const fs::path& folder, uint64_t size) {
  const auto fail = [&](int problem) {
    throw Error(fmt::format("cannot write {} of temporary data: {}", format_bytes(size), std::strerror(problem)),
                folder.string(), problem == ENOSPC ? "free some disk space, or choose a place on another disk" : "");
  };
  const fs::path path = temporary_sibling(folder / "scratch");
  const FileDescriptor file(path, O_RDWR | O_CREAT | O_EXCL);
  if (!file.is_open()) fail(errno);
  ::unlink(path.c_str());
  if (const int problem = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size))) fail(problem);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) fail(errno);
  return {static_cast<std::byte*>(data), [size](std::byte* mapped) { ::munmap(mapped, size); }};
}

void release_scratch(std::byte* scratch, uint64_t size) { ::madvise(scratch, size, MADV_DONTNEED); }

}  // namespace cgcn
