// Loaded before libc (LD_PRELOAD): reads of files whose path holds $FAILING_READS fail with EIO once $WORKING_READS of
// them have worked, as on a disk with a bad block.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" ssize_t pread64(int fd, void* out, size_t bytes, off64_t offset) {
  using Read = ssize_t (*)(int, void*, size_t, off64_t);
  static const auto read = reinterpret_cast<Read>(::dlsym(RTLD_NEXT, "pread64"));
  static const char* const failing = std::getenv("FAILING_READS");
  static std::atomic<long> working = std::atol(std::getenv("WORKING_READS"));
  char link[64], path[4096] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (::readlink(link, path, sizeof path - 1) > 0 && std::strstr(path, failing) != nullptr && --working < 0) {
    errno = EIO;
    return -1;
  }
  return read(fd, out, bytes, offset);
}

extern "C" ssize_t pread(int fd, void* out, size_t bytes, off_t offset) { return pread64(fd, out, bytes, offset); }
