// An immutable array together with whatever keeps its bytes alive: a buffer, a vector or a mapped file.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/file.h"

namespace cgcn {

template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::span<const T> view, std::shared_ptr<const void> owner) : view_(view), owner_(std::move(owner)) {}
  SharedArray(std::span<const T> view, std::shared_ptr<const MappedFile> file)
      : view_(view), file_(file.get()), owner_(std::move(file)) {}
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
  SharedArray first(size_t size) const {
    SharedArray head(*this);
    head.view_ = view_.first(size);
    return head;
  }
  // Gives the pages of these elements back if they are mapped from a file, which has them still.
  void release(size_t begin, size_t end) const {
    if (file_ == nullptr) return;
    const auto* const bytes = reinterpret_cast<const std::byte*>(view_.data());
    file_->release(static_cast<size_t>(bytes - file_->bytes().data()) + begin * sizeof(T), (end - begin) * sizeof(T));
  }

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
  const MappedFile* file_ = nullptr;
  std::shared_ptr<const void> owner_;
};

}  // namespace cgcn
