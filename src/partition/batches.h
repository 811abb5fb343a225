// The nodes of a level in stretches whose size depends on the level only, never on the threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/interrupt.h"
#include "common/threads.h"

namespace cgcn {

inline constexpr size_t kDecidedNodes = 256;  // that a thread takes at a time

inline size_t batch_size(size_t nodes) { return std::clamp<size_t>(nodes / 64, 64, size_t{1} << 16); }

template <class Work>
void for_each_stretch(size_t nodes, size_t length, Work&& work) {
  for (size_t first = 0; first < nodes; first += length) {
    throw_if_interrupted();
    work(first, std::min(nodes, first + length));
  }
}

inline constexpr size_t kStretch = 256 * kDecidedNodes;

// A batch decides at once, then moves in order: where it ends is part of the result.
template <class Work>
void for_each_batch(size_t nodes, Work&& work) {
  for_each_stretch(nodes, batch_size(nodes), work);
}

// A pass in which every node is for itself; the rows of a stretch are given back when it is done. Blocks of
// kDecidedNodes never lie in two stretches.
template <class Graph, class Work>
void for_each_block(const Graph& graph, size_t nodes, Work&& work) {
  for_each_stretch(nodes, kStretch, [&](size_t first, size_t last) {
    parallel_blocks(last - first, kDecidedNodes, [&](size_t begin, size_t end) { work(first + begin, first + end); });
    graph.release_rows(first, last);
  });
}

}  // namespace cgcn
