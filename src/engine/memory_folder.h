// A folder in memory for what a graph from arrays, or a training without a run folder, would keep on disk.
#pragma once

#include <sys/types.h>

#include "common/descriptor.h"
#include "common/file.h"

namespace cgcn {

class MemoryFolder {
 public:
  // bytes: what it is to hold. In the shared memory of the machine if that has room; else where scratch files go,
  // which is said.
  explicit MemoryFolder(uint64_t bytes);
  ~MemoryFolder();  // removes it, in the process that made it
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  FileDescriptor lock_;  // held as long as a process uses it: others remove what nobody holds
  pid_t maker_;
};

}  // namespace cgcn
