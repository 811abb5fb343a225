// Temporary names, the locks that tell a live temporary from a dead one, and directories that appear whole.
//
// A process number says nothing across containers: two of them may both be process 1 on a host of the same name. So a
// temporary is held by a lock of the kernel, which every container on the machine sees and which ends with the process.
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/hash.h"

namespace cgcn {
namespace {

constexpr std::string_view kTemporaryMark = ".clustergcn-", kTemporaryEnd = ".tmp";  // nobody else names files so
constexpr auto kForeignAge = std::chrono::hours(24 * 7);
constexpr int kMostTries = 100;

// The same for all processes that see each other's locks: one start of one kernel.
uint32_t kernel_number() {
  static const uint32_t number = [] {
    std::string text;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    if (!std::getline(file, text)) {
      char host[256] = {};
      ::gethostname(host, sizeof host - 1);
      text = host;
    }
    return static_cast<uint32_t>(checksum(text.data(), text.size()));
  }();
  return number;
}

// ….clustergcn-KERNEL-RANDOM.tmp: the number of the kernel. Earlier versions had other numbers behind the mark.
std::optional<uint32_t> temporary_kernel(const std::string& name) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string::npos || !name.ends_with(kTemporaryEnd)) return std::nullopt;
  const std::string_view middle = std::string_view(name).substr(
      mark + kTemporaryMark.size(), name.size() - mark - kTemporaryMark.size() - kTemporaryEnd.size());
  if (middle.size() < 10 || middle[8] != '-' || middle.find_first_not_of("0123456789abcdef-") != std::string_view::npos)
    return std::nullopt;
  uint32_t kernel = 0;
  const auto [end, status] = std::from_chars(middle.data(), middle.data() + 8, kernel, 16);
  return status == std::errc() && end == middle.data() + 8 ? std::optional(kernel) : std::nullopt;
}

bool unchanged_for_long(const fs::path& path) {
  std::error_code error;
  fs::file_time_type newest = fs::last_write_time(path, error);
  if (error) return false;
  for (const auto& entry : fs::recursive_directory_iterator(path, error))
    if (const auto time = entry.last_write_time(error); !error) newest = std::max(newest, time);
  return newest < fs::file_time_type::clock::now() - kForeignAge;
}

// Whether the lock is held and the name still stands for what is locked: someone who cleans up may have been faster.
// If the file system knows no locks, age alone tells (unchanged_for_long).
bool hold(const FileDescriptor& made, const fs::path& path) {
  if (::flock(made.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat held {
  }, named{};
  return ::fstat(made.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

template <class Make>
HeldTemporary make_temporary(const fs::path& target, Make&& make) {
  for (int tries = 0;; ++tries) {
    HeldTemporary made{temporary_sibling(target), {}};
    made.lock = make(made.path);
    if (!made.lock.is_open()) {
      if (errno != EEXIST || tries == kMostTries) fail_write(target, errno);
    } else if (hold(made.lock, made.path)) {
      return made;
    } else if (tries == kMostTries) {
      throw Error("cannot keep a temporary file next to it: another program removes it", target.string());
    }
  }
}

}  // namespace

fs::path temporary_sibling(const fs::path& path) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    random = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
             static_cast<uint64_t>(::getpid()) << 40;
  fs::path sibling = path;
  sibling += fmt::format("{}{:08x}-{:016x}{}", kTemporaryMark, kernel_number(), random, kTemporaryEnd);
  return sibling;
}

bool is_temporary_name(const std::string& name) { return temporary_kernel(name).has_value(); }

HeldTemporary make_temporary_file(const fs::path& target) {
  return make_temporary(target, [](const fs::path& path) { return FileDescriptor(path, O_WRONLY | O_CREAT | O_EXCL); });
}

HeldTemporary make_temporary_folder(const fs::path& target) {
  return make_temporary(target, [](const fs::path& path) {
    return ::mkdir(path.c_str(), 0755) != 0 ? FileDescriptor() : FileDescriptor(path, O_RDONLY | O_DIRECTORY);
  });
}

void remove_stale_temporaries(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory.empty() ? fs::path(".") : directory, error)) {
    const auto kernel = temporary_kernel(entry.path().filename().string());
    if (!kernel) continue;
    const FileDescriptor file(entry.path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open()) continue;
    const bool locked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;  // and so it stays while it is removed
    if (!locked && errno == EWOULDBLOCK) continue;
    std::error_code ignored;
    if ((locked && *kernel == kernel_number()) || unchanged_for_long(entry.path()))
      fs::remove_all(entry.path(), ignored);
  }
}

struct StagedDirectory::Lock {
  FileDescriptor folder;
};

StagedDirectory::StagedDirectory(const fs::path& target, Existing existing, MayReplace may_replace)
    : target_(target.lexically_normal().has_filename() ? target.lexically_normal()
                                                       : target.lexically_normal().parent_path()),
      existing_(existing),
      may_replace_(std::move(may_replace)) {
  std::error_code error;
  if (existing == Existing::kRefuse && fs::exists(fs::symlink_status(target_, error))) refuse_existing();
  if (fs::is_symlink(target_, error) && fs::exists(target_, error)) target_ = fs::canonical(target_);  // the link stays
  check_replaceable();
  error.clear();
  if (!target_.parent_path().empty()) fs::create_directories(target_.parent_path(), error);
  if (error) fail_write(target_.parent_path(), error.value());
  remove_stale_temporaries(target_.parent_path());
  HeldTemporary made = make_temporary_folder(target_);
  staging_ = std::move(made.path);
  lock_ = std::make_unique<Lock>(Lock{std::move(made.lock)});
}

StagedDirectory::~StagedDirectory() {
  if (lock_ == nullptr) return;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void StagedDirectory::refuse_existing() const {
  throw Error("already exists", target_.string(), "another name, or --force to replace it");
}

void StagedDirectory::check_replaceable() const {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target_, error);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) throw Error("is not a directory", target_.string(), "another name");
  if (fs::is_empty(target_, error) && !error) return;
  if (!may_replace_) throw Error("already exists", target_.string(), "another name");
  may_replace_(target_);
}

void StagedDirectory::commit() {
  sync_directory(staging_);
  put_in_place();
  lock_.reset();
}

void StagedDirectory::put_in_place() {
  std::error_code error;
  if (existing_ == Existing::kRefuse) {
    if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0)
      return sync_directory(target_.parent_path());
    if (errno == EEXIST || fs::exists(target_, error)) refuse_existing();  // another program was faster
  }
  check_replaceable();
  // If the file system can swap two names, there is no moment without a whole directory of this name.
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    sync_directory(target_.parent_path());
    fs::remove_all(staging_, error);
    return;
  }
  fs::path old;
  if (fs::exists(target_, error)) {
    old = temporary_sibling(target_);
    if (::rename(target_.c_str(), old.c_str()) != 0) fail_write(target_, errno);
  }
  if (::rename(staging_.c_str(), target_.c_str()) != 0) {
    const int failure = errno;
    if (!old.empty()) ::rename(old.c_str(), target_.c_str());
    fail_write(target_, failure);
  }
  sync_directory(target_.parent_path());
  if (!old.empty()) fs::remove_all(old, error);
}

}  // namespace cgcn
