// An immutable array together with whatever keeps its bytes alive: a buffer, a vector or a mapped file.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/buffer.h"

namespace cgcn {

template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::span<const T> view, std::shared_ptr<const void> owner) : view_(view), owner_(std::move(owner)) {}
  SharedArray(std::vector<T> values) {  // NOLINT: implicit, so that literals read well in tests
    auto kept = std::make_shared<std::vector<T>>(std::move(values));
    view_ = *kept;
    owner_ = std::move(kept);
  }
  SharedArray(Buffer<T> values) {  // NOLINT: implicit
    auto kept = std::make_shared<Buffer<T>>(std::move(values));
    view_ = std::span<const T>(kept->data(), kept->size());
    owner_ = std::move(kept);
  }

  // The first `size` elements: a builder that allocated an upper bound keeps what it filled.
  SharedArray first(size_t size) const { return {view_.first(size), owner_}; }

  std::span<const T> span() const { return view_; }
  operator std::span<const T>() const { return view_; }
  const T* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  const T& operator[](size_t i) const { return view_[i]; }
  auto begin() const { return view_.begin(); }
  auto end() const { return view_.end(); }

 private:
  std::span<const T> view_;
  std::shared_ptr<const void> owner_;
};

}  // namespace cgcn
