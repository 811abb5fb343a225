// What the writers of files share: a descriptor that closes itself, writes that are whole or an Error, and the lock by
// which a temporary file or folder is known to be in use.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "common/file.h"

namespace cgcn {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}  // takes it over; -1: none
  FileDescriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

[[noreturn]] void fail_write(const fs::path& path, int error);
// Every byte, or an Error that names the path.
void write_all(int fd, const char* data, size_t bytes, const fs::path& path);
void sync_directory(const fs::path& directory);  // best effort: some file systems refuse it

// A file or folder next to `target` under a name that nobody else has, held by a lock (flock) as long as the descriptor
// is open: remove_stale_temporaries leaves it alone.
struct HeldTemporary {
  fs::path path;
  FileDescriptor lock;  // the file itself, open for writing; or the folder
};
HeldTemporary make_temporary_file(const fs::path& target);
HeldTemporary make_temporary_folder(const fs::path& target);

}  // namespace cgcn
