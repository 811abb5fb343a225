// Loaded before libc (LD_PRELOAD): calls on files fail as on a bad disk, a full one, or one without the right to write.
//
//   CGCN_FAULT=CALLS:ERROR:WORKING:PATH
//
// CALLS: names joined by commas. ERROR: EIO, ENOSPC, EACCES, EROFS; short: half of the bytes are written; full: half of
// them once, then no space is left; none. The first WORKING of these calls on paths that hold PATH work, the others
// fail. CGCN_FAULT_COUNT=FILE: how many of these calls there were is written there at the end.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Fault {
  std::string calls, kind, path;
  int error = 0;
  long working = 0;
  std::atomic<long> seen{0};

  Fault() {
    const char* text = std::getenv("CGCN_FAULT");
    if (text == nullptr) return;
    std::string parts[4];
    for (int i = 0; i < 4; ++i) {
      const char* end = i < 3 ? std::strchr(text, ':') : text + std::strlen(text);
      if (end == nullptr) return;
      parts[i].assign(text, end);
      text = end + 1;
    }
    calls = "," + parts[0] + ",";
    kind = parts[1];
    working = std::atol(parts[2].c_str());
    path = parts[3];
    error = kind == "EIO" ? EIO : kind == "EACCES" ? EACCES : kind == "EROFS" ? EROFS : ENOSPC;
  }
  ~Fault() {
    const char* file = std::getenv("CGCN_FAULT_COUNT");
    std::FILE* out = file != nullptr ? std::fopen(file, "a") : nullptr;
    if (out == nullptr) return;
    std::fprintf(out, "%ld\n", seen.load());
    std::fclose(out);
  }
};

Fault& fault() {
  static Fault one;
  return one;
}

enum class Outcome { kWork, kFail, kHalf };

Outcome outcome_of(const char* call, const std::string& path) {
  Fault& f = fault();
  if (f.calls.find("," + std::string(call) + ",") == std::string::npos || path.find(f.path) == std::string::npos)
    return Outcome::kWork;
  const long number = f.seen++;
  if (number < f.working || f.kind == "none") return Outcome::kWork;
  if (f.kind == "short" || (f.kind == "full" && number == f.working)) return Outcome::kHalf;
  errno = f.error;
  return Outcome::kFail;
}

std::string path_of(int fd) {
  char link[64], path[4096] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return ::readlink(link, path, sizeof path - 1) > 0 ? path : "";
}

std::string whole(const char* path) {
  char folder[4096];
  return path[0] == '/' || ::getcwd(folder, sizeof folder) == nullptr ? path : std::string(folder) + "/" + path;
}

template <class Call>
Call next(const char* name) {
  return reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

// What only reads is another call to CGCN_FAULT: openread.
#define CGCN_OPEN(name)                                                       \
  extern "C" int name(const char* path, int flags, ...) {                     \
    va_list arguments;                                                        \
    va_start(arguments, flags);                                               \
    const mode_t mode = mode_of(flags, arguments);                            \
    va_end(arguments);                                                        \
    const char* call = (flags & O_ACCMODE) == O_RDONLY ? "openread" : "open"; \
    if (outcome_of(call, whole(path)) == Outcome::kFail) return -1;           \
    static const auto real = next<int (*)(const char*, int, ...)>(#name);     \
    return real(path, flags, mode);                                           \
  }
CGCN_OPEN(open)
CGCN_OPEN(open64)

#define CGCN_WRITE(name, call)                                                         \
  extern "C" ssize_t name(int fd, const void* data, size_t bytes) {                    \
    static const auto real = next<ssize_t (*)(int, const void*, size_t)>(#name);       \
    const Outcome outcome = outcome_of(call, path_of(fd));                             \
    if (outcome == Outcome::kFail) return -1;                                          \
    return real(fd, data, outcome == Outcome::kHalf && bytes > 1 ? bytes / 2 : bytes); \
  }
CGCN_WRITE(write, "write")

#define CGCN_PWRITE(name)                                                                      \
  extern "C" ssize_t name(int fd, const void* data, size_t bytes, off_t offset) {              \
    static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>(#name);        \
    const Outcome outcome = outcome_of("write", path_of(fd));                                  \
    if (outcome == Outcome::kFail) return -1;                                                  \
    return real(fd, data, outcome == Outcome::kHalf && bytes > 1 ? bytes / 2 : bytes, offset); \
  }
CGCN_PWRITE(pwrite)
CGCN_PWRITE(pwrite64)

#define CGCN_PREAD(name)                                                          \
  extern "C" ssize_t name(int fd, void* out, size_t bytes, off_t offset) {        \
    static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>(#name); \
    if (outcome_of("pread", path_of(fd)) == Outcome::kFail) return -1;            \
    return real(fd, out, bytes, offset);                                          \
  }
CGCN_PREAD(pread)
CGCN_PREAD(pread64)

extern "C" int mkdir(const char* path, mode_t mode) {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  return outcome_of("mkdir", whole(path)) == Outcome::kFail ? -1 : real(path, mode);
}

extern "C" int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return outcome_of("rename", whole(to)) == Outcome::kFail ? -1 : real(from, to);
}

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  static const auto real = next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  return outcome_of("rename", whole(to)) == Outcome::kFail ? -1 : real(from_folder, from, to_folder, to, flags);
}

extern "C" int fsync(int fd) {
  static const auto real = next<int (*)(int)>("fsync");
  return outcome_of("fsync", path_of(fd)) == Outcome::kFail ? -1 : real(fd);
}

#define CGCN_FTRUNCATE(name)                                                             \
  extern "C" int name(int fd, off_t size) noexcept {                                     \
    static const auto real = next<int (*)(int, off_t)>(#name);                           \
    return outcome_of("ftruncate", path_of(fd)) == Outcome::kFail ? -1 : real(fd, size); \
  }
CGCN_FTRUNCATE(ftruncate)
CGCN_FTRUNCATE(ftruncate64)
