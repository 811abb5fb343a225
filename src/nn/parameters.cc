#include "nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "common/memory.h"
#include "common/random.h"
#include "common/threads.h"

namespace cgcn {

size_t Parameters::add(std::string name, size_t rows, size_t columns, Initial initial, ParameterKind kind) {
  constexpr uint64_t kUnit = Buffer<float>::kAlignment / sizeof(float);
  list_.push_back({std::move(name), static_cast<uint32_t>(rows), static_cast<uint32_t>(columns), size_, kind});
  initial_.push_back(initial);
  size_ += (list_.back().size() + kUnit - 1) / kUnit * kUnit;
  return list_.size() - 1;
}

void Parameters::allocate(uint64_t seed) {
  for (Buffer<float>* buffer : {&values_, &gradients_}) {
    *buffer = Buffer<float>(size_);
    prefer_huge_pages(buffer->data(), size_ * sizeof(float));
    buffer->fill(0);
  }
  for (size_t i = 0; i < list_.size(); ++i) {
    if (initial_[i] == Initial::kGlorot) initialise_glorot(i, seed);
    if (initial_[i] == Initial::kOne) std::fill_n(value(i).data, list_[i].size(), 1.0f);
  }
}

// One random stream a row.
void Parameters::initialise_glorot(size_t index, uint64_t seed) {
  const kernels::Matrix weight = value(index);
  const float limit = std::sqrt(6.0f / (static_cast<float>(weight.rows) + static_cast<float>(weight.columns)));
  parallel_blocks(weight.rows, 256, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      Random random(seed, Purpose::kInitialise, static_cast<uint32_t>(r), static_cast<uint32_t>(index));
      for (size_t c = 0; c < weight.columns; ++c) weight.row(r)[c] = (2 * random.uniform() - 1) * limit;
    }
  });
}

}  // namespace cgcn
