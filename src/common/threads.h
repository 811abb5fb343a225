// Threads are OpenMP's, shared with OpenBLAS: one setting for all. Work is cut into blocks whose size never depends on
// the number of threads, so that results do not either.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>

namespace cgcn {

void set_thread_count(int threads);  // 0: all cores that the process may use
int thread_count();

// Another number of threads for as long as it lives.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int threads) : before_(thread_count()) { set_thread_count(threads); }
  ~ThreadCountScope() { set_thread_count(before_); }
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
};

// An exception must not leave an OpenMP region: the first one is kept, and thrown again behind it.
class FirstFailure {
 public:
  template <class Work>
  void catch_in(Work&& work) noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::mutex mutex_;
};

// Calls work(begin, end) for consecutive blocks of [0, n). Blocks run in any order on any thread; an exception thrown
// by one of them is rethrown here after the others have finished.
template <class Work>
void parallel_blocks(size_t n, size_t block, Work&& work) {
  const auto blocks = static_cast<std::ptrdiff_t>((n + block - 1) / block);
  if (blocks <= 1) {
    if (n > 0) work(size_t{0}, n);
    return;
  }
  FirstFailure failure;
#pragma omp parallel for schedule(dynamic, 1) num_threads(thread_count())
  for (std::ptrdiff_t i = 0; i < blocks; ++i) {
    const size_t begin = static_cast<size_t>(i) * block;
    failure.catch_in([&] { work(begin, std::min(n, begin + block)); });
  }
  failure.rethrow();
}

}  // namespace cgcn
