// Rows of a sparse matrix cut into blocks of few entries. Who reads a mapped matrix from end to end gives the pages of
// a block back before the next: rows alone do not bound them, since a row may have any number of entries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "graph/csr_graph.h"

namespace cgcn {

class RowBlocks {
 public:
  // offsets: of rows, rising, and one past the last. A row of more entries is a block by itself.
  explicit RowBlocks(std::span<const EdgeOffset> offsets, size_t most_rows = 65536) {
    constexpr EdgeOffset kMostEntries = EdgeOffset{1} << 20;
    const size_t rows = offsets.size() - 1;
    for (size_t begin = 0; begin < rows; begin = begins_.back()) {
      const auto last = offsets.begin() + static_cast<std::ptrdiff_t>(std::min(rows, begin + most_rows)) + 1;
      const auto end = std::upper_bound(offsets.begin() + static_cast<std::ptrdiff_t>(begin) + 1, last,
                                        offsets[begin] + kMostEntries);
      begins_.push_back(std::max(begin + 1, static_cast<size_t>(end - offsets.begin()) - 1));
    }
  }
  size_t count() const { return begins_.size() - 1; }
  size_t begin(size_t block) const { return begins_[block]; }
  size_t end(size_t block) const { return begins_[block + 1]; }

 private:
  std::vector<size_t> begins_ = {0};
};

}  // namespace cgcn
