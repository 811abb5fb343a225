// An array of numbers as NumPy stores it, in any width, byte order and order of axes, read in blocks as what is needed.
//
// The bytes stay if they are (a mapped file, a member of an .npz, a string in a pickle); nothing is converted as a
// whole. Sizes were checked against the bytes that are there before an Array exists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/buffer.h"
#include "common/file.h"
#include "common/interrupt.h"
#include "graph/npy.h"

namespace cgcn {

// Bytes and what keeps them alive. `mapped`: they lie in a mapped file, not on the heap.
struct SharedBytes {
  std::span<const std::byte> span;
  std::shared_ptr<const void> owner;
  bool mapped = false;

  static SharedBytes map(const fs::path& path);
  static SharedBytes own(std::string bytes);
  std::string_view text() const { return {reinterpret_cast<const char*>(span.data()), span.size()}; }
  SharedBytes slice(size_t offset, size_t size) const { return {span.subspan(offset, size), owner, mapped}; }
  void release() const;  // drops the pages from this process's memory; they come back when read again
};

void append_utf8(std::string& text, uint32_t code);

class Array {
 public:
  Array() = default;  // empty, of no shape
  // `bytes` begin with a .npy header. `where` is for messages: "features.npy", "data.npz: labels".
  static Array parse_npy(SharedBytes bytes, std::string where);
  static Array open_npy(const fs::path& path);
  // The elements alone, described by `header` (whose data_offset is ignored). The sizes must agree.
  Array(NpyHeader header, SharedBytes elements, std::string where);

  const std::string& where() const { return where_; }
  const std::vector<uint64_t>& shape() const { return header_.shape; }
  uint64_t size() const { return header_.num_elements(); }
  uint64_t rows() const { return shape().empty() ? 1 : shape()[0]; }
  uint64_t columns() const { return shape().size() < 2 ? 1 : shape()[1]; }
  bool fortran_order() const { return header_.fortran_order && shape().size() > 1; }
  std::string dtype() const { return header_.dtype(); }
  bool is_half() const { return header_.kind == 'f' && header_.item_bytes == 2; }
  bool is_integer() const;  // bool counts
  bool is_number() const;   // integer or float of 16, 32 or 64 bits
  // Throw Error unless so; `what` completes "…, but node ids must be integers".
  void require_integers(std::string_view what) const;
  void require_numbers(std::string_view what) const;
  void require_dimensions(size_t count, std::string_view what) const;

  // Elements first, first + stride, … in storage order, converted. T: int64_t (integers only; uint64 saturates), float,
  // double. CGCN_CHECK guards the range.
  template <class T>
  void read(uint64_t first, uint64_t stride, size_t count, T* out) const;
  // Rows [first, first + count) of a one- or two-dimensional array, in C order whatever the storage is.
  template <class T>
  void read_rows(uint64_t first, size_t count, T* out) const;
  template <class T>
  std::vector<T> read_all() const {  // flat, for what is kept whole anyway
    std::vector<T> values(size());
    read_rows(0, rows(), values.data());
    release();
    return values;
  }
  std::vector<std::string> read_texts() const;  // 'U' and 'S' arrays

  void release() const { elements_.release(); }

 private:
  NpyHeader header_;
  SharedBytes elements_;
  std::string where_;
};

// Calls use(first_row, rows in C order) for consecutive blocks of about a megabyte, letting go of pages behind it.
template <class T, class Use>
void for_each_row_block(const Array& array, Use&& use) {
  constexpr size_t kBlockBytes = size_t{1} << 20;
  const uint64_t rows = array.rows(), columns = array.columns();
  const uint64_t step = std::max<uint64_t>(1, kBlockBytes / std::max<uint64_t>(1, columns * sizeof(T)));
  Buffer<T> block(std::min(rows, step) * columns);
  for (uint64_t first = 0; first < rows; first += step) {
    throw_if_interrupted();
    const size_t count = static_cast<size_t>(std::min(step, rows - first));
    array.read_rows(first, count, block.data());
    array.release();
    use(first, std::span<const T>(block.data(), count * columns));
  }
}

}  // namespace cgcn
