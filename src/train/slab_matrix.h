// An n × columns matrix of embeddings that may be larger than memory.
//
// In memory it is one row-major array. Spilled it lies in temporary files without a name (they are gone with the
// process, however that ends) as slabs of a few columns, each row-major: an aggregation, which reads rows in any order,
// loads one slab after another and works on that; everything else reads and writes ranges of rows. The files take
// stripes of rows in turn, as only one thread at a time can write to a file. All access is in runs of such stripes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "common/buffer.h"
#include "common/file.h"
#include "kernels/bfloat16.h"

namespace cgcn {

// Of either precision. Scratch is memory for so many rows as are asked for.
class SlabRows {
 public:
  SlabRows() = default;  // of no rows
  // slab_columns 0: in memory.
  SlabRows(size_t rows, size_t columns, kernels::Precision precision, size_t slab_columns);
  ~SlabRows();
  SlabRows(SlabRows&&) noexcept;
  SlabRows& operator=(SlabRows&&) noexcept;

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  kernels::Precision precision() const { return precision_; }
  bool spilled() const { return slab_columns_ > 0; }

  // In memory only: the whole of it.
  kernels::Rows all() { return {memory_.data(), rows_, columns_, columns_, precision_}; }
  kernels::ConstRows all() const { return {memory_.data(), rows_, columns_, columns_, precision_}; }

  // Rows `range`: where they lie, or read into scratch and given from there.
  kernels::ConstRows read(kernels::RowRange range, void* scratch) const;
  // Where to put rows `range`: their place, or scratch, which write() then brings to the file.
  kernels::Rows place(kernels::RowRange range, void* scratch);
  void write(kernels::RowRange range, const void* scratch);

  size_t num_slabs() const;
  kernels::RowRange slab_columns(size_t slab) const;  // first and one past the last column
  // All rows of a slab: where it lies, or read into scratch, which is made as large as it needs.
  kernels::ConstRows read_slab(size_t slab, Buffer<char>& scratch) const;
  // Spilled only: rows `range` of one slab.
  void write_slab_rows(size_t slab, kernels::RowRange range, const void* values);
  void read_slab_rows(size_t slab, kernels::RowRange range, void* values) const;

 private:
  static constexpr size_t kFiles = 8, kStripe = 256;  // rows
  // Calls transfer(file, position in it, bytes of the slab's rows `range` before it, bytes) for every stripe of them.
  template <class Transfer>
  void for_each_stripe(size_t slab, kernels::RowRange range, Transfer&& transfer) const;
  static std::array<int, kFiles> no_files() {
    std::array<int, kFiles> files;
    files.fill(-1);
    return files;
  }
  size_t bytes(size_t values) const { return values * kernels::bytes_of(precision_); }
  size_t rows_ = 0, columns_ = 0, slab_columns_ = 0;
  kernels::Precision precision_ = kernels::Precision::kFloat32;
  Buffer<char> memory_;
  std::array<int, kFiles> files_ = no_files();
};

// Of float32.
class SlabMatrix : public SlabRows {
 public:
  SlabMatrix() = default;
  SlabMatrix(size_t rows, size_t columns, size_t slab_columns)
      : SlabRows(rows, columns, kernels::Precision::kFloat32, slab_columns) {}
  explicit SlabMatrix(SlabRows rows);

  kernels::Matrix matrix() { return all().floats(); }
  kernels::ConstMatrix matrix() const { return all().floats(); }
  kernels::ConstMatrix read_rows(kernels::RowRange range, float* scratch) const {
    return read(range, scratch).floats();
  }
  kernels::Matrix place_rows(kernels::RowRange range, float* scratch) { return place(range, scratch).floats(); }
  void write_rows(kernels::RowRange range, const float* scratch) { write(range, scratch); }
};

}  // namespace cgcn
