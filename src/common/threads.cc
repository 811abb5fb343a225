#include "common/threads.h"

#include <atomic>

namespace cgcn {
namespace {
std::atomic<int> configured{0};
}  // namespace

void set_thread_count(int threads) {
  configured = threads > 0 ? threads : omp_get_num_procs();
  omp_set_num_threads(configured);
}

int thread_count() {
  const int threads = configured;
  return threads > 0 ? threads : omp_get_max_threads();
}

}  // namespace cgcn
