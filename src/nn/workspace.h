// One allocation for everything that a step needs: laid out twice by the same code, first to learn its size, then
// to place it.
//
// A layer takes what it keeps from forward to backward. What it needs only while it runs, or only until the next layer
// has run, is shared: every layer says how much, and the largest counts.
//
// A workspace has a precision. In bfloat16 these are bfloat16: the rows between layers and their gradients, the rows C
// that are multiplied by a weight and dC, dz, and packed copies of the weights and of dz. These are float32: z, which a
// norm reads, and its statistics; the logits and the loss; the weights, their gradients and the optimiser's state. All
// sums are float32.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/memory.h"
#include "common/placed_memory.h"
#include "kernels/bfloat16.h"

namespace cgcn {

class Workspace {
 public:
  explicit Workspace(kernels::Precision precision = kernels::Precision::kFloat32) : precision_(precision) {}
  kernels::Precision precision() const { return precision_; }

  // place() takes and shares all there is, and is called twice.
  template <class Place>
  void lay_out(Place&& place) {
    *this = Workspace(precision_);
    memory_.lay_out([&] {
      place();
      take_shared();
    });
    prefer_huge_pages(memory_.memory().data(), memory_.bytes());
  }
  // Only the first of the two: bytes() says what it would take.
  template <class Place>
  void count(Place&& place) {
    *this = Workspace(precision_);
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
  // Padded rows of the workspace's precision, or of another one.
  static size_t row_bytes(size_t rows, size_t columns, kernels::Precision precision) {
    return rows * kernels::padded_stride(columns, precision) * kernels::bytes_of(precision);
  }
  size_t row_bytes(size_t rows, size_t columns) const { return row_bytes(rows, columns, precision_); }

  // Rows of layer l's output on the way up, and of their gradient on the way down: one place for the even layers, one
  // for the odd.
  void share_rows(uint32_t layer, size_t rows, size_t columns) { share_rows(layer, rows, columns, precision_); }
  void share_rows(uint32_t layer, size_t rows, size_t columns, kernels::Precision precision) {
    share(rows_[layer % 2], row_bytes(rows, columns, precision));
  }
  kernels::Rows rows(uint32_t layer, size_t rows, size_t columns) const {
    return this->rows(layer, rows, columns, precision_);
  }
  kernels::Rows rows(uint32_t layer, size_t rows, size_t columns, kernels::Precision precision) const {
    return kernels::padded(rows_[layer % 2].data, rows, columns, precision);
  }
  // For one layer at a time.
  void share_scratch(size_t bytes) { share(scratch_, bytes); }
  void* scratch() const { return scratch_.data; }
  // For one product at a time: a factor that is packed for it.
  void share_packed(size_t elements) { share(packed_, elements * sizeof(BFloat16)); }
  BFloat16* packed() const { return static_cast<BFloat16*>(packed_.data); }

 private:
  struct Shared {
    size_t bytes = 0;
    void* data = nullptr;
  };
  static void share(Shared& shared, size_t bytes) { shared.bytes = std::max(shared.bytes, bytes); }
  void take_shared() {
    for (Shared* shared : {&rows_[0], &rows_[1], &scratch_, &packed_}) shared->data = take<char>(shared->bytes);
  }

  kernels::Precision precision_;
  PlacedMemory memory_;
  std::array<Shared, 2> rows_;
  Shared scratch_, packed_;
};

}  // namespace cgcn
