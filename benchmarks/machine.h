// What this machine can do at best, measured in the same run as what is compared with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "common/buffer.h"
#include "common/random.h"
#include "common/threads.h"
#include "common/timer.h"
#include "kernels/blas.h"

namespace cgcn::bench {

inline Buffer<float> random_floats(size_t size, uint64_t seed) {
  Buffer<float> values(size);
  parallel_blocks(size, 1 << 16, [&](size_t begin, size_t end) {
    Random random(seed, Purpose::kTest, static_cast<uint32_t>(begin >> 16));
    for (size_t i = begin; i < end; ++i) values[i] = 2 * random.uniform() - 1;
  });
  return values;
}

// The least seconds of `repeats` calls.
template <class Work>
double least_seconds(int repeats, Work&& work) {
  double least = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const Timer timer;
    work();
    least = std::min(least, timer.seconds());
  }
  return least;
}

// Single-core sgemm of OpenBLAS at its best: a square product of 1536, GFLOP/s.
inline double sgemm_gflops(int repeats = 8) {
  constexpr size_t n = 1536;
  static const Buffer<float> a = random_floats(n * n, 1), b = random_floats(n * n, 2);
  static Buffer<float> c(n * n, 0.0f);
  const double seconds = least_seconds(repeats, [&] {
    kernels::blas_sgemm()(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(),
                          n);
  });
  return 2e-9 * n * n * n / seconds;
}

// Copying from memory to memory on all threads, GB/s read plus written.
inline double copy_gigabytes(size_t bytes = size_t{512} << 20, int repeats = 5) {
  Buffer<char> from(bytes, 1), to(bytes, 0);
  const double seconds = least_seconds(repeats, [&] {
    parallel_blocks(bytes, 1 << 20,
                    [&](size_t begin, size_t end) { std::memcpy(&to[begin], &from[begin], end - begin); });
  });
  return 2e-9 * static_cast<double>(bytes) / seconds;
}

}  // namespace cgcn::bench
