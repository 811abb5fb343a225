#include "train/slab_matrix.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/error.h"
#include "common/memory.h"
#include "common/threads.h"

namespace cgcn {
namespace {

using kernels::ConstRows;
using kernels::Precision;
using kernels::RowRange;
using kernels::Rows;

// Rows of it are read in any order: in large pages most of their addresses are at hand, and fewer are to be cleared.
Buffer<char> large_buffer(size_t bytes) {
  Buffer<char> buffer(bytes);
  prefer_huge_pages(buffer.data(), bytes);
  return buffer;
}

int open_unnamed_file(const fs::path& folder) {
  int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {  // a file system without O_TMPFILE
    std::string pattern = (folder / "clustergcn-XXXXXX").string();
    file = ::mkostemp(pattern.data(), O_CLOEXEC);
    if (file >= 0) ::unlink(pattern.c_str());
  }
  if (file < 0)
    throw Error(fmt::format("cannot make a temporary file: {}", std::strerror(errno)), folder.string(),
                errno == EMFILE || errno == ENFILE ? "allow more open files (ulimit -n)"
                                                   : "set TMPDIR to a folder on a disk with room");
  return file;
}

[[noreturn]] void fail_transfer(const char* what, int error) {
  throw Error(fmt::format("cannot {} the temporary file of embeddings: {}", what, std::strerror(error)),
              scratch_folder().string(), "set TMPDIR to a folder on a disk with room, or give more --memory");
}

}  // namespace

SlabRows::SlabRows(size_t rows, size_t columns, Precision precision, size_t slab_columns)
    : SlabRows() {  // whose destructor closes what is open if this fails
  rows_ = rows;
  columns_ = columns;
  slab_columns_ = std::min(slab_columns, columns);
  precision_ = precision;
  if (!spilled()) {
    memory_ = large_buffer(this->bytes(rows * columns));
    return;
  }
  const fs::path folder = scratch_folder();
  const uint64_t bytes = this->bytes(rows * columns);
  if (const uint64_t room = free_disk_space(folder); room < bytes)
    throw Error(fmt::format("embeddings of {} do not fit: {} are free", format_bytes(bytes), format_bytes(room)),
                folder.string(), "set TMPDIR to a folder on a disk with room, or give more --memory");
  for (int& file : files_) file = open_unnamed_file(folder);
}

SlabRows::~SlabRows() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}
SlabRows::SlabRows(SlabRows&& other) noexcept { *this = std::move(other); }
SlabRows& SlabRows::operator=(SlabRows&& other) noexcept {
  std::swap(rows_, other.rows_);
  std::swap(columns_, other.columns_);
  std::swap(slab_columns_, other.slab_columns_);
  std::swap(precision_, other.precision_);
  std::swap(memory_, other.memory_);
  std::swap(files_, other.files_);
  return *this;
}

size_t SlabRows::num_slabs() const { return spilled() ? (columns_ + slab_columns_ - 1) / slab_columns_ : 1; }

RowRange SlabRows::slab_columns(size_t slab) const {
  if (!spilled()) return {0, columns_};
  return {slab * slab_columns_, std::min(columns_, (slab + 1) * slab_columns_)};
}

// A file has its stripes of slab after slab, the last stripe in full.
template <class Transfer>
void SlabRows::for_each_stripe(size_t slab, RowRange range, Transfer&& transfer) const {
  const RowRange columns = slab_columns(slab);
  const size_t stripes = (rows_ + kStripe - 1) / kStripe, rows_of_file = (stripes + kFiles - 1) / kFiles * kStripe;
  for (size_t row = range.begin; row < range.end;) {
    const size_t stripe = row / kStripe, end = std::min(range.end, (stripe + 1) * kStripe);
    const size_t row_of_file = stripe / kFiles * kStripe + row % kStripe;
    transfer(files_[stripe % kFiles], bytes(rows_of_file * columns.begin + row_of_file * columns.size()),
             bytes((row - range.begin) * columns.size()), bytes((end - row) * columns.size()));
    row = end;
  }
}

void SlabRows::read_slab_rows(size_t slab, RowRange range, void* values) const {
  for_each_stripe(slab, range, [&](int file, uint64_t at, size_t before, size_t bytes) {
    for (char* to = static_cast<char*>(values) + before; bytes > 0;) {
      const ssize_t done = ::pread(file, to, bytes, static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail_transfer("read", done == 0 ? EIO : errno);
      to += done;
      at += static_cast<uint64_t>(done);
      bytes -= static_cast<size_t>(done);
    }
  });
}

void SlabRows::write_slab_rows(size_t slab, RowRange range, const void* values) {
  for_each_stripe(slab, range, [&](int file, uint64_t at, size_t before, size_t bytes) {
    for (const char* from = static_cast<const char*>(values) + before; bytes > 0;) {
      const ssize_t done = ::pwrite(file, from, bytes, static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail_transfer("write", done < 0 ? errno : ENOSPC);
      from += done;
      at += static_cast<uint64_t>(done);
      bytes -= static_cast<size_t>(done);
    }
  });
}

ConstRows SlabRows::read(RowRange range, void* scratch) const {
  if (!spilled()) return all().rows_from(range.begin, range.end);
  auto* const to = static_cast<char*>(scratch);
  Buffer<char> piece(bytes(range.size() * slab_columns_));
  for (size_t slab = 0; slab < num_slabs(); ++slab) {
    const RowRange columns = slab_columns(slab);
    read_slab_rows(slab, range, piece.data());
    for (size_t r = 0; r < range.size(); ++r)
      std::memcpy(to + bytes(r * columns_ + columns.begin), piece.data() + bytes(r * columns.size()),
                  bytes(columns.size()));
  }
  return {scratch, range.size(), columns_, columns_, precision_};
}

Rows SlabRows::place(RowRange range, void* scratch) {
  if (!spilled()) return all().rows_from(range.begin, range.end);
  return {scratch, range.size(), columns_, columns_, precision_};
}

void SlabRows::write(RowRange range, const void* scratch) {
  if (!spilled()) return;
  const auto* const from = static_cast<const char*>(scratch);
  Buffer<char> piece(bytes(range.size() * slab_columns_));
  for (size_t slab = 0; slab < num_slabs(); ++slab) {
    const RowRange columns = slab_columns(slab);
    for (size_t r = 0; r < range.size(); ++r)
      std::memcpy(piece.data() + bytes(r * columns.size()), from + bytes(r * columns_ + columns.begin),
                  bytes(columns.size()));
    write_slab_rows(slab, range, piece.data());
  }
}

ConstRows SlabRows::read_slab(size_t slab, Buffer<char>& scratch) const {
  if (!spilled()) return all();
  const size_t columns = slab_columns(slab).size();
  if (scratch.size() < bytes(rows_ * columns)) scratch = large_buffer(bytes(rows_ * columns));
  constexpr size_t kRowsAtOnce = 4096;
  parallel_blocks(rows_, kRowsAtOnce, [&](size_t begin, size_t end) {
    read_slab_rows(slab, {begin, end}, scratch.data() + bytes(begin * columns));
  });
  return {scratch.data(), rows_, columns, columns, precision_};
}

SlabMatrix::SlabMatrix(SlabRows rows) : SlabRows(std::move(rows)) { CGCN_CHECK(precision() == Precision::kFloat32); }

}  // namespace cgcn
