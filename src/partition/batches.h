// The nodes of a level in batches of a size that depends on the level only: a batch decides at once, then moves in
// order.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/interrupt.h"

namespace cgcn {

inline constexpr size_t kDecidedNodes = 256;  // that a thread takes at a time

inline size_t batch_size(size_t nodes) { return std::clamp<size_t>(nodes / 64, 64, size_t{1} << 16); }

template <class Work>
void for_each_batch(size_t nodes, Work&& work) {
  const size_t batch = batch_size(nodes);
  for (size_t first = 0; first < nodes; first += batch) {
    throw_if_interrupted();
    work(first, std::min(nodes, first + batch));
  }
}

}  // namespace cgcn
