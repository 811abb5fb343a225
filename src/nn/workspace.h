// One block of memory for everything that a step needs: laid out twice by the same code, first to learn its size, then
// to place it.
//
// A layer takes what it keeps from forward to backward. What it needs only while it runs, or only until the next layer
// has run, is shared: every layer says how much, and the largest counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/buffer.h"
#include "kernels/matrix.h"

namespace cgcn {

class Workspace {
 public:
  // place() takes and shares all there is, and is called twice.
  template <class Place>
  void lay_out(Place&& place) {
    *this = {};
    place();
    take_shared();
    allocate();
    place();
    take_shared();
  }
  // Only the first of the two: bytes() says what it would take.
  template <class Place>
  void count(Place&& place) {
    *this = {};
    place();
    take_shared();
  }
  uint64_t bytes() const { return memory_.empty() ? taken_ : memory_.size(); }

  template <class T>
  T* take(size_t size) {
    constexpr size_t kLine = Buffer<char>::kAlignment;
    const size_t at = taken_;
    taken_ += (size * sizeof(T) + kLine - 1) / kLine * kLine;
    return memory_.empty() ? nullptr : reinterpret_cast<T*>(memory_.data() + at);
  }
  float* take_matrix(size_t rows, size_t columns) { return take<float>(rows * kernels::padded_stride(columns)); }

  // Rows of layer l's output on the way up, and of their gradient on the way down: one place for the even layers, one
  // for the odd.
  void share_rows(uint32_t layer, size_t rows, size_t columns) {
    share(rows_[layer % 2], rows * kernels::padded_stride(columns));
  }
  kernels::Matrix rows(uint32_t layer, size_t rows, size_t columns) const {
    return kernels::padded(rows_[layer % 2].data, rows, columns);
  }
  // For one layer at a time.
  void share_scratch(size_t floats) { share(scratch_, floats); }
  float* scratch() const { return scratch_.data; }

 private:
  struct Shared {
    size_t floats = 0;
    float* data = nullptr;
  };
  static void share(Shared& shared, size_t floats) { shared.floats = std::max(shared.floats, floats); }
  void take_shared();
  void allocate();

  Buffer<char> memory_;
  size_t taken_ = 0;
  std::array<Shared, 2> rows_;
  Shared scratch_;
};

}  // namespace cgcn
