#include "common/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "common/error.h"
#include "common/hash.h"
#include "common/input_file.h"
#include "common/mapping_faults.h"

namespace cgcn {
namespace {

constexpr uint64_t kWriteBack = uint64_t{16} << 20;
constexpr size_t kWriteBuffer = size_t{1} << 20;

std::string reason(int error) { return std::strerror(error); }

[[noreturn]] void fail_write(const fs::path& path, int error) {
  throw Error(fmt::format("cannot write: {}", reason(error)), path.string(),
              error == ENOSPC                     ? "free some disk space, or choose a place on another disk"
              : error == EROFS || error == EACCES ? "choose a place that you may write to"
                                                  : "");
}

class FileDescriptor {
 public:
  FileDescriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, const char* data, size_t bytes, const fs::path& path) {
  while (bytes > 0) {
    const ssize_t done = ::write(fd, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_write(path, errno);
    data += done;
    bytes -= static_cast<size_t>(done);
  }
}

void sync_directory(const fs::path& directory) {
  const FileDescriptor fd(directory.empty() ? fs::path(".") : directory, O_RDONLY | O_DIRECTORY);
  if (fd.get() >= 0) ::fsync(fd.get());  // best effort: some file systems refuse it
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const FileDescriptor fd(path, O_RDONLY | O_NONBLOCK);  // a pipe that nobody writes to would keep us waiting
  if (fd.get() < 0)
    throw Error(errno == ENOENT ? "no such file" : fmt::format("cannot read: {}", reason(errno)), path.string());
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw Error(fmt::format("cannot read: {}", reason(errno)), path.string());
  if (!S_ISREG(status.st_mode)) refuse_special_file(path);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    throw Error(fmt::format("cannot map: {}", reason(errno)), path.string());
  }
  watch_mapping(data_, status, path_);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(data_);
  ::munmap(data_, size_);
}

void MappedFile::release(size_t offset, size_t bytes) const {
  constexpr uintptr_t kWindow = uintptr_t{2} << 20;
  if (bytes == 0 || data_ == nullptr) return;
  const auto first = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t begin = std::max(first, (first + offset) / kWindow * kWindow);
  const uintptr_t end = std::min(first + size_, (first + offset + bytes + kWindow - 1) / kWindow * kWindow);
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

struct OutputFile::State {
  State(const fs::path& written, const fs::path& named) : fd(written, O_WRONLY | O_CREAT | O_TRUNC) {
    if (fd.get() < 0) fail_write(named, errno);
    pending.reserve(kWriteBuffer);
  }
  // The disk begins on what is there while more is made, so that the fsync at the end finds little left.
  void begin_to_store(uint64_t written) {
    if (written - handed_over < kWriteBack) return;
#ifdef SYNC_FILE_RANGE_WRITE
    ::sync_file_range(fd.get(), static_cast<off_t>(handed_over), static_cast<off_t>(written - handed_over),
                      SYNC_FILE_RANGE_WRITE);  // a hint: fsync is what counts
#endif
    handed_over = written;
  }

  FileDescriptor fd;
  std::vector<char> pending;
  uint64_t handed_over = 0;
};

OutputFile::OutputFile(const fs::path& path) : OutputFile(path, path) {}
OutputFile OutputFile::staged(const fs::path& path) {
  remove_stale_temporaries(path.parent_path());
  return {path, temporary_sibling(path)};
}
OutputFile::OutputFile(fs::path path, fs::path written) : path_(std::move(path)), written_(std::move(written)) {
  state_ = std::make_unique<State>(written_, path_);
}
OutputFile::OutputFile(OutputFile&&) noexcept = default;

OutputFile::~OutputFile() {
  if (state_ == nullptr) return;
  std::error_code ignored;
  fs::remove(written_, ignored);  // not committed
}

void OutputFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  size_ += bytes;
  if (state_->pending.size() + bytes > kWriteBuffer) flush();
  if (bytes >= kWriteBuffer)
    write_all(state_->fd.get(), from, bytes, path_);
  else
    state_->pending.insert(state_->pending.end(), from, from + bytes);
  state_->begin_to_store(size_ - state_->pending.size());
}

void OutputFile::write_at(uint64_t offset, const void* data, size_t bytes) {
  flush();
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::pwrite(state_->fd.get(), from, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_write(path_, errno);
    from += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void OutputFile::flush() {
  write_all(state_->fd.get(), state_->pending.data(), state_->pending.size(), path_);
  state_->pending.clear();
}

void OutputFile::commit(Storing storing) {
  flush();
  if (storing == Storing::kNow && ::fsync(state_->fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    fail_write(path_, errno);
  if (written_ != path_) {
    if (::rename(written_.c_str(), path_.c_str()) != 0) fail_write(path_, errno);
    sync_directory(path_.parent_path());
  }
  state_.reset();
}

StagedDirectory::StagedDirectory(const fs::path& target, Existing existing)
    : target_(target.lexically_normal().has_filename() ? target.lexically_normal()
                                                       : target.lexically_normal().parent_path()),
      existing_(existing) {
  std::error_code error;
  if (existing == Existing::kRefuse && fs::exists(target_, error)) refuse_existing();
  if (!target_.parent_path().empty()) fs::create_directories(target_.parent_path(), error);
  if (error) fail_write(target_.parent_path(), error.value());
  remove_stale_temporaries(target_.parent_path());
  staging_ = temporary_sibling(target_);
  if (::mkdir(staging_.c_str(), 0755) != 0) fail_write(target_, errno);
}

StagedDirectory::~StagedDirectory() {
  if (committed_) return;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void StagedDirectory::refuse_existing() const {
  throw Error("already exists", target_.string(), "another name, or --force to replace it");
}

void StagedDirectory::commit() {
  sync_directory(staging_);
  std::error_code error;
  fs::path old;
  if (existing_ == Existing::kRefuse) {
    if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0) {
      committed_ = true;
      sync_directory(target_.parent_path());
      return;
    }
    if (errno == EEXIST || fs::exists(target_, error)) refuse_existing();  // another program was faster
  }
  // Where the file system can swap two names, there is no moment without a whole directory of this name.
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    committed_ = true;
    sync_directory(target_.parent_path());
    fs::remove_all(staging_, error);
    return;
  }
  if (fs::exists(target_, error)) {
    old = temporary_sibling(target_);
    if (::rename(target_.c_str(), old.c_str()) != 0) fail_write(target_, errno);
  }
  if (::rename(staging_.c_str(), target_.c_str()) != 0) {
    const int failure = errno;
    if (!old.empty()) ::rename(old.c_str(), target_.c_str());
    fail_write(target_, failure);
  }
  committed_ = true;
  sync_directory(target_.parent_path());
  if (!old.empty()) fs::remove_all(old, error);
}

std::string read_text_file(const fs::path& path, size_t limit) {
  const MappedFile file(path);
  if (file.text().size() > limit)
    throw Error(fmt::format("is {} bytes long, more than a file of this kind can be", file.text().size()),
                path.string());
  return std::string(file.text());
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  OutputFile file = OutputFile::staged(path);
  file.write(text);
  file.commit();
}

namespace {

constexpr const char* kTemporaryMark = ".clustergcn-";  // nobody else names files so
constexpr auto kForeignAge = std::chrono::hours(24 * 7);

// A process number means something on one host only, so that the host's name is part of a temporary's.
uint32_t host_number() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return static_cast<uint32_t>(checksum(host, std::strlen(host)));
}

struct TemporaryName {
  uint32_t host = 0;
  int pid = 0;
};

// ….clustergcn-HOST-PID-N.tmp, and nothing else.
std::optional<TemporaryName> parse_temporary(const std::string& name) {
  const size_t at = name.rfind(kTemporaryMark);
  if (at == std::string::npos) return std::nullopt;
  const char* rest = name.c_str() + at + std::strlen(kTemporaryMark);
  TemporaryName found;
  int used = 0;
  if (std::sscanf(rest, "%8x-%9d-%*9u.tmp%n", &found.host, &found.pid, &used) != 2 || used == 0 || rest[used] != '\0')
    return std::nullopt;
  return found;
}

bool unchanged_for_long(const fs::path& path) {
  std::error_code error;
  fs::file_time_type newest = fs::last_write_time(path, error);
  if (error) return false;
  for (const auto& entry : fs::recursive_directory_iterator(path, error))
    if (const auto time = entry.last_write_time(error); !error) newest = std::max(newest, time);
  return newest < fs::file_time_type::clock::now() - kForeignAge;
}

}  // namespace

fs::path temporary_sibling(const fs::path& path) {
  static std::atomic<unsigned> counter{0};
  fs::path sibling = path;
  sibling += fmt::format("{}{:08x}-{}-{}.tmp", kTemporaryMark, host_number(), ::getpid(), counter++);
  return sibling;
}

void remove_stale_temporaries(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory.empty() ? fs::path(".") : directory, error)) {
    const auto name = parse_temporary(entry.path().filename().string());
    if (!name || name->pid <= 0) continue;
    const bool stale =
        name->host == host_number() ? ::kill(name->pid, 0) != 0 && errno == ESRCH : unchanged_for_long(entry.path());
    std::error_code ignored;
    if (stale) fs::remove_all(entry.path(), ignored);
  }
}

uint64_t free_disk_space(const fs::path& path) {
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  while (!existing.empty() && !fs::exists(existing, error) && existing != existing.parent_path())
    existing = existing.parent_path();
  const fs::space_info space = fs::space(existing, error);
  return error ? UINT64_MAX : space.available;
}

}  // namespace cgcn
