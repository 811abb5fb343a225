#include "common/tbb_arenas.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <map>
#include <mutex>
#include <optional>

namespace cgcn::detail {
namespace {

// Arenas are kept for as long as the process lives: whoever asks for the same number of threads shares one, so that two
// trainings at once do not take twice the cores.
tbb::task_arena& arena_of(int threads) {
  static std::mutex mutex;
  static auto& arenas = *new std::map<int, tbb::task_arena>();  // never destroyed: threads may outlive main
  static std::optional<tbb::global_control> more_than_cores;  // else oneTBB starts no more threads than there are cores
  static int limit = tbb::info::default_concurrency();
  const std::lock_guard lock(mutex);
  if (threads > limit) {
    limit = threads;
    more_than_cores.reset();
    more_than_cores.emplace(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  }
  return arenas.try_emplace(threads, threads).first->second;
}

}  // namespace

void call_on_threads(int threads, size_t calls, void (*function)(void* context, size_t thread), void* context) {
  arena_of(threads).execute([&] {
    tbb::parallel_for(
        size_t{0}, calls,
        [&](size_t) { function(context, static_cast<size_t>(tbb::this_task_arena::current_thread_index())); },
        tbb::static_partitioner());
  });
}

}  // namespace cgcn::detail
