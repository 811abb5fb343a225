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

// Learnt by the optimiser; or a running mean of what batches measure, which lies where a gradient would (activation.h).
enum class ParameterKind { kLearnt, kStatistic };

// A named matrix inside the flat buffers.
struct Parameter {
  std::string name;        // "layer1.weight", "layer1.norm.scale" …
  uint32_t rows, columns;  // 1 row: a vector
  uint64_t offset;         // in floats
  ParameterKind kind = ParameterKind::kLearnt;
  bool is_learnt() const { return kind == ParameterKind::kLearnt; }
  uint64_t size() const { return uint64_t{rows} * columns; }
};

// What a parameter begins as: Glorot and Bengio's uniform distribution on ±√(6 / (rows + columns)), or a constant.
enum class Initial { kGlorot, kZero, kOne };

class Parameters {
 public:
  // Adds one; returns its index. allocate() ends the adding and initialises all of them.
  size_t add(std::string name, size_t rows, size_t columns, Initial initial,
             ParameterKind kind = ParameterKind::kLearnt);
  void allocate(uint64_t seed);

  const std::vector<Parameter>& list() const { return list_; }
  uint64_t value_bytes() const { return size_ * sizeof(float); }  // with padding; known before allocate()
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  std::span<float> gradients() { return gradients_; }
  std::span<const float> gradients() const { return gradients_; }

  kernels::Matrix value(size_t index) { return view(index, values_.data()); }
  kernels::ConstMatrix value(size_t index) const { return view(index, values_.data()); }
  kernels::Matrix gradient(size_t index) { return view(index, gradients_.data()); }

 private:
  template <class T>
  kernels::MatrixView<T> view(size_t index, T* buffer) const {
    const Parameter& p = list_[index];
    return {buffer + p.offset, p.rows, p.columns};
  }
  void initialise_glorot(size_t index, uint64_t seed);

  std::vector<Parameter> list_;
  std::vector<Initial> initial_;
  uint64_t size_ = 0;
  Buffer<float> values_, gradients_;
};

// One of them, for the layer that it belongs to; views are valid after allocate(). Default: there is none.
class OwnParameter {
 public:
  OwnParameter() = default;
  OwnParameter(Parameters& parameters, std::string name, size_t rows, size_t columns, Initial initial,
               ParameterKind kind = ParameterKind::kLearnt)
      : parameters_(&parameters), index_(parameters.add(std::move(name), rows, columns, initial, kind)) {}

  bool exists() const { return parameters_ != nullptr; }
  size_t index() const { return index_; }
  kernels::ConstMatrix value() const { return exists() ? parameters_->value(index_) : kernels::Matrix(); }
  kernels::Matrix gradient() const { return exists() ? parameters_->gradient(index_) : kernels::Matrix(); }

 private:
  Parameters* parameters_ = nullptr;
  size_t index_ = 0;
};

}  // namespace cgcn
