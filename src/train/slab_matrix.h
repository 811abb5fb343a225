// An n × columns matrix of embeddings that may be larger than memory.
//
// In memory it is one row-major array. Spilled it lies in a temporary file without a name (it is gone with the process,
// however that ends) as slabs of a few columns, each row-major: an aggregation, which reads rows in any order, loads
// one slab after another and works on that; everything else reads and writes ranges of rows. All file access is in long
// runs.
#pragma once

#include <cstdint>
#include <memory>

#include "common/buffer.h"
#include "common/file.h"
#include "kernels/matrix.h"

namespace cgcn {

class SlabMatrix {
 public:
  SlabMatrix() = default;  // of no rows
  // slab_columns 0: in memory.
  SlabMatrix(size_t rows, size_t columns, size_t slab_columns);
  ~SlabMatrix();
  SlabMatrix(SlabMatrix&&) noexcept;
  SlabMatrix& operator=(SlabMatrix&&) noexcept;

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  bool spilled() const { return slab_columns_ > 0; }

  // In memory only: the whole of it.
  kernels::Matrix matrix() { return {memory_.data(), rows_, columns_}; }
  kernels::ConstMatrix matrix() const { return {memory_.data(), rows_, columns_}; }

  // Rows `range`: where they lie, or read into scratch (range.size() × columns floats) and given from there.
  kernels::ConstMatrix read_rows(kernels::RowRange range, float* scratch) const;
  // Where to put rows `range`: their place, or scratch, which write_rows then brings to the file.
  kernels::Matrix place_rows(kernels::RowRange range, float* scratch);
  void write_rows(kernels::RowRange range, const float* scratch);

  size_t num_slabs() const;
  kernels::RowRange slab_columns(size_t slab) const;  // first and one past the last column
  // All rows of a slab: where it lies, or read into scratch (rows × slab_columns).
  kernels::ConstMatrix read_slab(size_t slab, Buffer<float>& scratch) const;
  // Spilled only: rows `range` of one slab.
  void write_slab_rows(size_t slab, kernels::RowRange range, const float* values);
  void read_slab_rows(size_t slab, kernels::RowRange range, float* values) const;

 private:
  uint64_t position(size_t slab, size_t row) const;
  size_t rows_ = 0, columns_ = 0, slab_columns_ = 0;
  Buffer<float> memory_;
  int file_ = -1;
};

}  // namespace cgcn
