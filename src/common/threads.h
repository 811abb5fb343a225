// Loops over blocks on several threads, which are oneTBB's. A loop ends when its blocks are done, whoever did them: a
// thread that has no processor at the moment keeps nobody waiting, but for the block it is in. Blocks have sizes that
// never depend on the number of threads, so that results do not either.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <type_traits>

#include "common/file.h"

namespace cgcn {

// Cores that the process may use: its processor mask and the CPU quotas of its control groups. root: where /proc and
// /sys are.
int usable_cores(const fs::path& root = "/");

void set_thread_count(int threads);  // of the whole process; 0: usable_cores()
int thread_count();                  // of loops that this thread starts

// Another number of threads for the loops that this thread starts, for as long as it lives.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int threads);
  ~ThreadCountScope();
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
};

// The order in which threads take the blocks of a loop. A thread that has done its own helps the others.
enum class BlockOrder {
  kAscending,    // the lowest that is left
  kNeighbours,   // a contiguous range for each thread, the same from loop to loop: rows stay in that thread's cache
  kInterleaved,  // block i for thread i mod threads, the same from loop to loop
};

namespace detail {

// What a block of one loop in the source has cost of late. A loop that is too short to be worth the handing over runs
// on the thread that meets it; which blocks there are does not depend on that.
struct BlockCost {
  std::atomic<float> seconds{0};
};

using BlockFunction = void (*)(const void* work, size_t block);
void run_blocks(size_t count, BlockOrder order, BlockFunction function, const void* work, BlockCost& cost);

}  // namespace detail

// Calls work(i) for i in [0, count), in any order on any thread. An exception thrown by one of them is rethrown here
// after those that had begun have finished; the others are not begun. A loop inside of a loop runs on the thread that
// meets it.
template <class Work>
void parallel_for_each_block(size_t count, BlockOrder order, const Work& work) {
  static detail::BlockCost cost;  // one for each loop in the source: its Work is a type of its own
  detail::run_blocks(
      count, order, [](const void* context, size_t block) { (*static_cast<const Work*>(context))(block); }, &work,
      cost);
}

// Calls work(begin, end) for consecutive blocks of [0, n).
template <class Work>
void parallel_blocks(size_t n, size_t block, Work&& work) {
  parallel_for_each_block((n + block - 1) / block, BlockOrder::kAscending, [&](size_t i) {
    const size_t begin = i * block;
    work(begin, std::min(n, begin + block));
  });
}

}  // namespace cgcn
