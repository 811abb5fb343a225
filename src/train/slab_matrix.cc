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

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::RowRange;

// Rows of it are read in any order: in large pages most of their addresses are at hand, and fewer are to be cleared.
Buffer<float> large_buffer(size_t size) {
  Buffer<float> buffer(size);
  prefer_huge_pages(buffer.data(), size * sizeof(float));
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
                "set TMPDIR to a folder on a disk with room");
  return file;
}

[[noreturn]] void fail_transfer(const char* what, int error) {
  throw Error(fmt::format("cannot {} the temporary file of embeddings: {}", what, std::strerror(error)),
              scratch_folder().string(), "set TMPDIR to a folder on a disk with room, or give more --memory");
}

}  // namespace

SlabMatrix::SlabMatrix(size_t rows, size_t columns, size_t slab_columns)
    : rows_(rows), columns_(columns), slab_columns_(std::min(slab_columns, columns)) {
  if (!spilled()) {
    memory_ = large_buffer(rows * columns);
    return;
  }
  const fs::path folder = scratch_folder();
  const uint64_t bytes = uint64_t{rows} * columns * sizeof(float);
  if (const uint64_t room = free_disk_space(folder); room < bytes)
    throw Error(fmt::format("embeddings of {} do not fit: {} are free", format_bytes(bytes), format_bytes(room)),
                folder.string(), "set TMPDIR to a folder on a disk with room, or give more --memory");
  file_ = open_unnamed_file(folder);
}

SlabMatrix::~SlabMatrix() {
  if (file_ >= 0) ::close(file_);
}
SlabMatrix::SlabMatrix(SlabMatrix&& other) noexcept { *this = std::move(other); }
SlabMatrix& SlabMatrix::operator=(SlabMatrix&& other) noexcept {
  std::swap(rows_, other.rows_);
  std::swap(columns_, other.columns_);
  std::swap(slab_columns_, other.slab_columns_);
  std::swap(memory_, other.memory_);
  std::swap(file_, other.file_);
  return *this;
}

size_t SlabMatrix::num_slabs() const { return spilled() ? (columns_ + slab_columns_ - 1) / slab_columns_ : 1; }

RowRange SlabMatrix::slab_columns(size_t slab) const {
  if (!spilled()) return {0, columns_};
  return {slab * slab_columns_, std::min(columns_, (slab + 1) * slab_columns_)};
}

uint64_t SlabMatrix::position(size_t slab, size_t row) const {
  const RowRange range = slab_columns(slab);
  return (uint64_t{rows_} * range.begin + uint64_t{row} * range.size()) * sizeof(float);
}

void SlabMatrix::read_slab_rows(size_t slab, RowRange range, float* values) const {
  size_t bytes = range.size() * slab_columns(slab).size() * sizeof(float);
  uint64_t at = position(slab, range.begin);
  for (char* to = reinterpret_cast<char*>(values); bytes > 0;) {
    const ssize_t done = ::pread(file_, to, bytes, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_transfer("read", done == 0 ? EIO : errno);
    to += done;
    at += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void SlabMatrix::write_slab_rows(size_t slab, RowRange range, const float* values) {
  size_t bytes = range.size() * slab_columns(slab).size() * sizeof(float);
  uint64_t at = position(slab, range.begin);
  for (const char* from = reinterpret_cast<const char*>(values); bytes > 0;) {
    const ssize_t done = ::pwrite(file_, from, bytes, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_transfer("write", done < 0 ? errno : ENOSPC);
    from += done;
    at += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

ConstMatrix SlabMatrix::read_rows(RowRange range, float* scratch) const {
  if (!spilled()) return matrix().rows_from(range.begin, range.end);
  Buffer<float> piece(range.size() * slab_columns_);
  for (size_t slab = 0; slab < num_slabs(); ++slab) {
    const RowRange columns = slab_columns(slab);
    read_slab_rows(slab, range, piece.data());
    for (size_t r = 0; r < range.size(); ++r)
      std::memcpy(scratch + r * columns_ + columns.begin, piece.data() + r * columns.size(),
                  columns.size() * sizeof(float));
  }
  return {scratch, range.size(), columns_};
}

Matrix SlabMatrix::place_rows(RowRange range, float* scratch) {
  if (!spilled()) return matrix().rows_from(range.begin, range.end);
  return {scratch, range.size(), columns_};
}

void SlabMatrix::write_rows(RowRange range, const float* scratch) {
  if (!spilled()) return;
  Buffer<float> piece(range.size() * slab_columns_);
  for (size_t slab = 0; slab < num_slabs(); ++slab) {
    const RowRange columns = slab_columns(slab);
    for (size_t r = 0; r < range.size(); ++r)
      std::memcpy(piece.data() + r * columns.size(), scratch + r * columns_ + columns.begin,
                  columns.size() * sizeof(float));
    write_slab_rows(slab, range, piece.data());
  }
}

ConstMatrix SlabMatrix::read_slab(size_t slab, Buffer<float>& scratch) const {
  if (!spilled()) return matrix();
  const size_t columns = slab_columns(slab).size();
  if (scratch.size() < rows_ * columns) scratch = large_buffer(rows_ * columns);
  constexpr size_t kRowsAtOnce = 4096;
  parallel_blocks(rows_, kRowsAtOnce, [&](size_t begin, size_t end) {
    read_slab_rows(slab, {begin, end}, scratch.data() + begin * columns);
  });
  return {scratch.data(), rows_, columns};
}

}  // namespace cgcn
