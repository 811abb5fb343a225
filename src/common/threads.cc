#include "common/threads.h"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "common/session.h"
#include "common/tbb_arenas.h"
#include "common/timer.h"

namespace cgcn {
namespace {

std::atomic<int> process_threads{0};
thread_local int scope_threads = 0;  // 0: as the process
thread_local bool inside_loop = false;
// A process that was forked has none of the threads that its parent shared loops with.
bool forked = false;
// Seconds. Handing a loop over takes about a microsecond, and up to fifty if the others sleep. Anything from 5 to 80
// microseconds gives the same time on small graphs (docs/performance.md).
constexpr float kWorthSharing = 20e-6f;

// How blocks are handed to other threads and back is hidden inside oneTBB from ThreadSanitizer; these tell it.
#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
void hand_over(void* loop) { __tsan_release(loop); }
void take_over(void* loop) { __tsan_acquire(loop); }
#else
void hand_over(void*) {}
void take_over(void*) {}
#endif

// The blocks that one thread takes first. Others take from it what is left.
struct alignas(64) Lane {
  std::atomic<size_t> next{0};
  size_t size = 0;
};

class Loop {
 public:
  Loop(size_t count, BlockOrder order, size_t threads, detail::BlockFunction function, const void* work)
      : count_(count),
        order_(order),
        lanes_(order == BlockOrder::kAscending ? 1 : std::min(count, threads)),
        function_(function),
        work_(work) {
    for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].size = (count - first(i) + stride() - 1) / stride();
    if (order == BlockOrder::kNeighbours)
      for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].size = first(i + 1) - first(i);
  }

  // Takes blocks until none is left, the thread's own first.
  void help(size_t thread) {
    const SessionScope scope(session_);
    const bool before = std::exchange(inside_loop, true);
    for (size_t i = 0; i < lanes_.size(); ++i) empty((thread + i) % lanes_.size());
    inside_loop = before;
  }

  void run_alone() {
    const bool before = std::exchange(inside_loop, true);
    for (size_t block = 0; block < count_; ++block) call(block);
    inside_loop = before;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  size_t stride() const { return order_ == BlockOrder::kInterleaved ? lanes_.size() : 1; }
  size_t first(size_t lane) const { return order_ == BlockOrder::kInterleaved ? lane : count_ * lane / lanes_.size(); }
  void empty(size_t lane) {
    Lane& own = lanes_[lane];
    if (own.next.load(std::memory_order_relaxed) >= own.size) return;
    for (size_t i; (i = own.next.fetch_add(1, std::memory_order_relaxed)) < own.size;) call(first(lane) + i * stride());
  }
  void call(size_t block) noexcept {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      function_(work_, block);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_.store(true, std::memory_order_relaxed);
    }
  }

  const size_t count_;
  const BlockOrder order_;
  std::vector<Lane> lanes_;
  const detail::BlockFunction function_;
  const void* const work_;
  Session* const session_ = Session::current();
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
};

}  // namespace

void set_thread_count(int threads) { process_threads = threads > 0 ? threads : usable_cores(); }

int thread_count() {
  if (scope_threads > 0) return scope_threads;
  if (process_threads == 0) set_thread_count(0);
  return process_threads;
}

ThreadCountScope::ThreadCountScope(int threads)
    : before_(std::exchange(scope_threads, threads > 0 ? threads : usable_cores())) {}

ThreadCountScope::~ThreadCountScope() { scope_threads = before_; }

void detail::run_blocks(size_t count, BlockOrder order, BlockFunction function, const void* work, BlockCost& cost) {
  static const int watching = ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
  const int threads = forked || watching != 0 ? 1 : thread_count();
  const size_t helpers = std::min(count, static_cast<size_t>(threads));
  Loop loop(count, order, helpers, function, work);
  if (helpers <= 1 || inside_loop) {
    loop.run_alone();
    return loop.rethrow();
  }
  const float known = cost.seconds.load(std::memory_order_relaxed);
  const bool alone = known > 0 && known * static_cast<float>(count) < kWorthSharing;
  const Timer timer;
  if (alone) {
    loop.run_alone();
  } else {
    hand_over(&loop);
    call_on_threads(
        threads, helpers,
        [](void* context, size_t thread) {
          take_over(context);
          static_cast<Loop*>(context)->help(thread);
          hand_over(context);
        },
        &loop);
    take_over(&loop);
  }
  const auto taken = static_cast<float>(timer.seconds()) * static_cast<float>(alone ? 1 : helpers);
  const float now = taken / static_cast<float>(count);
  cost.seconds.store(known == 0 ? now : known + (now - known) / 8, std::memory_order_relaxed);
  loop.rethrow();
}

}  // namespace cgcn
