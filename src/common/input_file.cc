#include "common/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/error.h"
#include "common/mapping_faults.h"

namespace cgcn {

void refuse_special_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_fifo(status))
    throw Error("is a pipe, and input files are read more than once", path.string(),
                "write its output to a file first");
  throw Error("is not a regular file", path.string());
}

InputFile::InputFile(const fs::path& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (fd_ < 0)
    throw Error(errno == ENOENT ? "no such file" : fmt::format("cannot read: {}", std::strerror(errno)), path.string());
  if (::fstat(fd_, &opened_) != 0) {
    const int problem = errno;
    ::close(fd_);
    throw Error(fmt::format("cannot read: {}", std::strerror(problem)), path.string());
  }
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read(uint64_t offset, void* out, size_t bytes) const {
  for (char* to = static_cast<char*>(out); bytes > 0;) {
    const ssize_t done = ::pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      throw Error(fmt::format("cannot read: {}", std::strerror(errno)), path_.string(),
                  "look at the disk; what was saved of the run is whole");
    if (done == 0) break;
    to += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  struct stat now {};
  if (bytes > 0 || ::fstat(fd_, &now) != 0 || !is_unchanged(opened_, now))
    throw Error("was changed or cut short while it was being read", path_.string(), kChangedFileHint);
}

}  // namespace cgcn
