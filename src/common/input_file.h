// A file read by plain reads into the caller's buffers, so that it takes no memory beyond those. It is opened once: a
// store that is replaced meanwhile continues being read as it was; one that is changed or cut short in place is
// noticed.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "common/file.h"

namespace cgcn {

// Error for a path that exists and is no regular file: a pipe, a folder, a device.
[[noreturn]] void refuse_special_file(const fs::path& path);

class InputFile {
 public:
  explicit InputFile(const fs::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const fs::path& path() const { return path_; }
  uint64_t size() const { return static_cast<uint64_t>(opened_.st_size); }
  // Exactly these bytes. Error if they cannot be read or the file is not what it was when it was opened. Any thread.
  void read(uint64_t offset, void* out, size_t bytes) const;

 private:
  fs::path path_;
  int fd_ = -1;
  struct stat opened_ {};
};

}  // namespace cgcn
