// Files, read and written so that nothing is ever half-written: a file or directory is made next to its final place
// under a temporary name and renamed into it when it is whole. What a killed process left behind is removed at the next
// start; what a living one still writes is locked and stays, whichever container that process runs in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cgcn {

namespace fs = std::filesystem;

// A read-only mapping of a whole file. Throws Error (missing, not a file, unreadable). An empty file maps to no bytes.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  const fs::path& path() const { return path_; }
  // Tells the kernel that these bytes will not be read again soon, so that a pass over a large file stays small in RSS.
  // The windows of 2 MiB that hold the ends go along: so much may be mapped around a page that is touched.
  void release(size_t offset, size_t bytes) const;

 private:
  fs::path path_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Buffered writing to one file; every write is checked (disk full is an Error that names the file).
class OutputFile {
 public:
  // Writes to `path` at once. Use it inside a StagedDirectory; for a lone file use write_file_atomically or staged().
  explicit OutputFile(const fs::path& path);
  // Writes next to `path`; commit() puts it in place. Without commit() nothing is left. A symbolic link stays, and what
  // it points at is replaced. A device or a pipe is written to as it is.
  static OutputFile staged(const fs::path& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write_at(uint64_t offset, const void* data, size_t bytes);  // flushes first; does not move the end
  uint64_t size() const { return size_; }
  const fs::path& path() const { return path_; }  // the final one
  // Flush, fsync, close, and rename if staged. kLater: without fsync, for what is checked when it is read and can be
  // made again; a crash of the machine may cost it.
  enum class Storing { kNow, kLater };
  void commit(Storing storing = Storing::kNow);

 private:
  struct State;
  OutputFile(fs::path path, fs::path place, std::unique_ptr<State> state);
  void flush();
  std::unique_ptr<State> state_;
  fs::path path_, place_;  // as it was named; through symbolic links
  uint64_t size_ = 0;
};

// A directory that appears under its name only when complete. path() is where to write meanwhile.
class StagedDirectory {
 public:
  enum class Existing { kRefuse, kReplace };
  // Throws Error if what is there may not be deleted. Asked at the start and again before it is replaced.
  using MayReplace = std::function<void(const fs::path& existing)>;
  // kReplace replaces an empty directory, and others as far as `may_replace` lets it.
  StagedDirectory(const fs::path& target, Existing existing, MayReplace may_replace = {});
  ~StagedDirectory();  // removes what was written unless committed
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const fs::path& path() const { return staging_; }
  const fs::path& target() const { return target_; }
  void commit();  // with kRefuse an Error if another program made one of this name meanwhile

 private:
  void check_replaceable() const;
  [[noreturn]] void refuse_existing() const;
  void put_in_place();

  struct Lock;
  fs::path target_, staging_;
  Existing existing_;
  MayReplace may_replace_;
  std::unique_ptr<Lock> lock_;  // held until it is committed or gone
};

std::string read_text_file(const fs::path& path, size_t limit = size_t{1} << 30);
void write_file_atomically(const fs::path& path, std::string_view text);
// At the end of the file, which is made if it is missing. If that fails, the file is as it was before.
void append_to_file(const fs::path& path, std::string_view text);

// Removes what a process left behind in `directory` that no longer lives: temporaries that nobody holds a lock on.
// Those of another machine (or of this one before it was started again), whose locks may not be seen here, only if
// nothing in them changed for seven days.
void remove_stale_temporaries(const fs::path& directory);
fs::path temporary_sibling(const fs::path& path);  // the name scheme that remove_stale_temporaries knows
bool is_temporary_name(const std::string& name);

// Whether `inner` is `outer` or lies within it, by what the names stand for.
bool lies_within(const fs::path& inner, const fs::path& outer);
fs::path scratch_folder();  // TMPDIR, or a folder on disk: /tmp is often memory itself
// Of this program, for this user alone: in XDG_CACHE_HOME, ~/.cache or scratch_folder(). Made if it does not exist;
// none if that fails everywhere.
std::optional<fs::path> cache_folder();
bool can_be_made(const fs::path& path);  // whether the folder that it would lie in, or be made in, can be written to
uint64_t free_disk_space(const fs::path& path);

}  // namespace cgcn
