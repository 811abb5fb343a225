// Every weight of a model in one flat buffer, and the gradients in a second one of the same layout, with named views.
//
// Parameters begin at multiples of 16 floats; the padding between them is zero and stays zero.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/buffer.h"
#include "kernels/matrix.h"

namespace cgcn {

// A named matrix inside the flat buffers.
struct Parameter {
  std::string name;        // "layer1.weight", "layer1.norm.scale" …
  uint32_t rows, columns;  // 1 row: a vector
  uint64_t offset;         // in floats
  uint64_t size() const { return uint64_t{rows} * columns; }
};

class Parameters {
 public:
  // Adds one; returns its index. allocate() ends the adding.
  size_t add(std::string name, uint32_t rows, uint32_t columns);
  void allocate();

  const std::vector<Parameter>& list() const { return list_; }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  std::span<float> gradients() { return gradients_; }
  std::span<const float> gradients() const { return gradients_; }

  kernels::Matrix value(size_t index) { return view(index, values_.data()); }
  kernels::ConstMatrix value(size_t index) const { return view(index, values_.data()); }
  kernels::Matrix gradient(size_t index) { return view(index, gradients_.data()); }

  // Glorot and Bengio's uniform distribution on ±√(6 / (rows + columns)), one random stream a row.
  void initialise_glorot(size_t index, uint64_t seed);

 private:
  template <class T>
  kernels::MatrixView<T> view(size_t index, T* buffer) const {
    const Parameter& p = list_[index];
    return {buffer + p.offset, p.rows, p.columns};
  }
  std::vector<Parameter> list_;
  uint64_t size_ = 0;
  Buffer<float> values_, gradients_;
};

}  // namespace cgcn
