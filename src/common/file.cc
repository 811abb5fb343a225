#include "common/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/input_file.h"
#include "common/mapping_faults.h"

namespace cgcn {
namespace {

constexpr uint64_t kWriteBack = uint64_t{16} << 20;
constexpr size_t kWriteBuffer = size_t{1} << 20;

std::string reason(int error) { return std::strerror(error); }

// What a name stands for in the end, so that a symbolic link stays one.
fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links) {
    const fs::path next = fs::read_symlink(path, error);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

FileDescriptor open_to_write(const fs::path& path, int flags) {
  FileDescriptor file(path, O_WRONLY | flags);
  if (!file.is_open()) fail_write(path, errno);
  return file;
}

}  // namespace

void fail_write(const fs::path& path, int error) {
  throw Error(fmt::format("cannot write: {}", reason(error)), path.string(),
              error == ENOSPC                     ? "free some disk space, or choose a place on another disk"
              : error == EROFS || error == EACCES ? "choose a place that you may write to"
                                                  : "");
}

void write_all(int fd, const char* data, size_t bytes, const fs::path& path) {
  while (bytes > 0) {
    const ssize_t done = ::write(fd, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_write(path, done < 0 ? errno : ENOSPC);
    data += done;
    bytes -= static_cast<size_t>(done);
  }
}

void sync_directory(const fs::path& directory) {
  const FileDescriptor fd(directory.empty() ? fs::path(".") : directory, O_RDONLY | O_DIRECTORY);
  if (fd.is_open()) ::fsync(fd.get());
}

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
  State(fs::path path, FileDescriptor opened, bool removable)
      : written(std::move(path)), fd(std::move(opened)), removed_unless_committed(removable) {
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

  fs::path written;
  FileDescriptor fd;
  bool removed_unless_committed;
  std::vector<char> pending;
  uint64_t handed_over = 0;
};

OutputFile::OutputFile(const fs::path& path)
    : OutputFile(path, path,
                 std::make_unique<State>(path, open_to_write(path, O_CREAT | O_TRUNC), /*removable=*/true)) {}

OutputFile OutputFile::staged(const fs::path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    if (S_ISDIR(there.st_mode)) throw Error("is a directory", path.string());
    return {path, path, std::make_unique<State>(path, open_to_write(path, 0), /*removable=*/false)};
  }
  const fs::path place = behind_links(path);
  remove_stale_temporaries(place.parent_path());
  HeldTemporary made = make_temporary_file(place);
  return {path, place, std::make_unique<State>(std::move(made.path), std::move(made.lock), /*removable=*/true)};
}

OutputFile::OutputFile(fs::path path, fs::path place, std::unique_ptr<State> state)
    : state_(std::move(state)), path_(std::move(path)), place_(std::move(place)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;

OutputFile::~OutputFile() {
  if (state_ == nullptr || !state_->removed_unless_committed) return;
  std::error_code ignored;
  fs::remove(state_->written, ignored);  // not committed
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
    if (done <= 0) fail_write(path_, done < 0 ? errno : ENOSPC);
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
  if (state_->written != place_) {
    if (::rename(state_->written.c_str(), place_.c_str()) != 0) fail_write(path_, errno);
    sync_directory(place_.parent_path());
  }
  state_.reset();
}

std::string read_text_file(const fs::path& path, size_t limit) {
  const MappedFile file(path);
  if (file.text().size() > limit)
    throw Error(fmt::format("has {} bytes, more than this kind of file can have", file.text().size()), path.string());
  return std::string(file.text());
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  OutputFile file = OutputFile::staged(path);
  file.write(text);
  file.commit();
}

void append_to_file(const fs::path& path, std::string_view text) {
  const FileDescriptor file(path, O_WRONLY | O_APPEND | O_CREAT);
  if (!file.is_open()) fail_write(path, errno);
  struct stat before {};
  if (::fstat(file.get(), &before) != 0) fail_write(path, errno);
  try {
    write_all(file.get(), text.data(), text.size(), path);
  } catch (const Error&) {
    if (::ftruncate(file.get(), before.st_size) != 0) throw;  // what is torn is passed over when it is read
    throw;
  }
}

bool lies_within(const fs::path& inner, const fs::path& outer) {
  std::error_code error;
  fs::path at = fs::canonical(inner, error);
  for (; !error && !at.empty(); at = at.parent_path()) {
    if (fs::equivalent(at, outer, error)) return true;
    if (at == at.parent_path()) break;
  }
  return false;
}

fs::path scratch_folder() {
  if (const char* named = std::getenv("TMPDIR"); named != nullptr && *named != '\0') return named;
  std::error_code problem;
  return fs::is_directory("/var/tmp", problem) ? "/var/tmp" : fs::temp_directory_path();
}

namespace {

// A folder that nobody else can write to, made or found.
bool make_private(const fs::path& folder) {
  std::error_code ignored;
  fs::create_directories(folder.parent_path(), ignored);
  ::mkdir(folder.c_str(), 0700);
  struct stat found;
  return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & (S_IWGRP | S_IWOTH)) == 0 && ::faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) == 0;
}

}  // namespace

std::optional<fs::path> cache_folder() {
  const auto within = [](const char* variable, const char* folder) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value == '/' ? fs::path(value) / folder
                                             : fs::path();  // a relative one is to be ignored
  };
  for (const fs::path& place : {within("XDG_CACHE_HOME", "clustergcn"), within("HOME", ".cache/clustergcn"),
                                scratch_folder() / fmt::format("clustergcn-{}", ::geteuid())})
    if (!place.empty() && make_private(place)) return place;
  return std::nullopt;
}

namespace {

// The path itself, or the nearest folder above it that exists.
fs::path nearest_existing(const fs::path& path) {
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  while (!existing.empty() && !fs::exists(existing, error) && existing != existing.parent_path())
    existing = existing.parent_path();
  return existing;
}

}  // namespace

bool can_be_made(const fs::path& path) {
  return ::faccessat(AT_FDCWD, nearest_existing(path.parent_path()).c_str(), W_OK, AT_EACCESS) == 0;
}

uint64_t free_disk_space(const fs::path& path) {
  std::error_code error;
  const fs::space_info space = fs::space(nearest_existing(path), error);
  return error ? UINT64_MAX : space.available;
}

}  // namespace cgcn
