// One allocation that is laid out twice by the same code: first to learn its size, then to place what lies in it.
// What says its size before it exists is therefore what is allocated later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/buffer.h"

namespace cgcn {

class PlacedMemory {
 public:
  // place() takes all there is, and is called twice.
  template <class Place>
  void lay_out(Place&& place) {
    count(place);
    memory_ = Buffer<char>(taken_);
    taken_ = 0;
    place();
  }
  // The same in the memory that there is, if that is enough.
  template <class Place>
  void lay_out_again(Place&& place) {
    Buffer<char> before = std::move(memory_);
    count(place);
    before.reserve_discarding(taken_);
    memory_ = std::move(before);
    taken_ = 0;
    place();
  }
  // Only the first of the two: bytes() says what it would take.
  template <class Place>
  void count(Place&& place) {
    memory_ = {};
    taken_ = 0;
    place();
  }
  uint64_t bytes() const { return memory_.empty() ? taken_ : memory_.size(); }
  Buffer<char>& memory() { return memory_; }

  // Begins at a cache line. Null while only the size is counted.
  template <class T>
  T* take(size_t size) {
    constexpr size_t kLine = Buffer<char>::kAlignment;
    const size_t at = taken_;
    taken_ += (size * sizeof(T) + kLine - 1) / kLine * kLine;
    return memory_.empty() ? nullptr : reinterpret_cast<T*>(memory_.data() + at);
  }

 private:
  Buffer<char> memory_;
  size_t taken_ = 0;
};

}  // namespace cgcn
