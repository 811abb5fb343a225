// One allocation for everything that a step needs: laid out twice by the same code, first to learn its size, then
// to place it.
//
// A layer takes what it keeps from forward to backward. What it needs only while it runs, or only until the next layer
// has run, is shared: every layer says how much, and the largest counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/memory.h"
#include "common/placed_memory.h"
#include "kernels/matrix.h"

namespace cgcn {

class Workspace {
 public:
  // place() takes and shares all there is, and is called twice.
  template <class Place>
  void lay_out(Place&& place) {
    *this = {};
    memory_.lay_out([&] {
      place();
      take_shared();
    });
    prefer_huge_pages(memory_.memory().data(), memory_.bytes());
  }
  // Only the first of the two: bytes() says what it would take.
  template <class Place>
  void count(Place&& place) {
    *this = {};
    memory_.count([&] {
      place();
      take_shared();
    });
  }
  uint64_t bytes() const { return memory_.bytes(); }

  template <class T>
  T* take(size_t size) {
    return memory_.take<T>(size);
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
  void take_shared() {
    for (Shared* shared : {&rows_[0], &rows_[1], &scratch_}) shared->data = take<float>(shared->floats);
  }

  PlacedMemory memory_;
  std::array<Shared, 2> rows_;
  Shared scratch_;
};

}  // namespace cgcn
