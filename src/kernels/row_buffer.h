// Rows of either precision that it owns, one behind the other without padding.
#pragma once

#include "common/buffer.h"
#include "kernels/bfloat16.h"

namespace cgcn::kernels {

class RowBuffer {
 public:
  RowBuffer() = default;
  RowBuffer(size_t rows, size_t columns, Precision precision)
      : memory_(rows * columns * bytes_of(precision)), rows_(rows), columns_(columns), precision_(precision) {}

  Rows rows() { return {memory_.data(), rows_, columns_, columns_, precision_}; }
  ConstRows rows() const { return {memory_.data(), rows_, columns_, columns_, precision_}; }
  void* data() { return memory_.data(); }

 private:
  Buffer<char> memory_;
  size_t rows_ = 0, columns_ = 0;
  Precision precision_ = Precision::kFloat32;
};

}  // namespace cgcn::kernels
