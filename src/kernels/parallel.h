// Loops over parts of a matrix on all threads. Which part goes to which thread is fixed, so that from one loop to the
// next a thread meets the rows that are in its own cache; what a part computes never depends on the thread. An
// exception thrown by a part is rethrown here after the others have finished.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/threads.h"
#include "kernels/matrix.h"

namespace cgcn::kernels {

// work(i) for i in [0, count): part i on thread i mod threads.
template <class Work>
void parallel_parts(size_t count, Work&& work) {
  const auto parts = static_cast<std::ptrdiff_t>(count);
  FirstFailure failure;
#pragma omp parallel for schedule(static, 1) num_threads(thread_count()) if (parts > 1)
  for (std::ptrdiff_t i = 0; i < parts; ++i) failure.catch_in([&] { work(static_cast<size_t>(i)); });
  failure.rethrow();
}

// work(rows) for blocks of rows; neighbouring blocks on the same thread.
template <class Work>
void parallel_rows(size_t rows, size_t block, Work&& work) {
  const auto blocks = static_cast<std::ptrdiff_t>((rows + block - 1) / block);
  FirstFailure failure;
#pragma omp parallel for schedule(static) num_threads(thread_count()) if (blocks > 1)
  for (std::ptrdiff_t i = 0; i < blocks; ++i) {
    const size_t begin = static_cast<size_t>(i) * block;
    failure.catch_in([&] { work(RowRange{begin, std::min(rows, begin + block)}); });
  }
  failure.rethrow();
}

}  // namespace cgcn::kernels
