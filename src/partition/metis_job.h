// What the program and the process that METIS runs in share: one file in memory. Offsets count bytes from its begin.
#pragma once

#include <atomic>
#include <cstdint>

namespace cgcn {

inline constexpr int kMetisJobFile = 3;  // the number under which the process finds it
inline constexpr uint64_t kMetisJobMagic = 0x31424F4A53495445;

struct MetisJobPiece {
  uint64_t offsets = 0, targets = 0;
  uint64_t edge_weights = 0, node_weights = 0;  // 0: none
  uint64_t clusters = 0;                        // where the result goes
  int32_t nodes = 0, constraints = 1, parts = 0, seed = 0;
  int32_t volume = 0, recursive = 0;  // 1: that objective, that method
  float imbalance = 0;
  int32_t unused = 0;
};

struct MetisJob {
  uint64_t magic = kMetisJobMagic;
  uint64_t bytes = 0;              // of the file
  uint64_t pieces = 0, table = 0;  // how many, and where their descriptions are
  std::atomic<uint64_t> next = 0;  // the first that nobody has begun
  double seconds = 0;              // METIS's own, of the process that ended last
  int32_t return_code = 0;         // METIS's: the first failure, or the last success; 0: it never returned
  int32_t ended = 0;               // processes that came to their end
  int64_t parent = 0;              // the process that started them
};

}  // namespace cgcn
