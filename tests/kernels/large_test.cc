// Matrices and rows beyond 2³² numbers. Nearly all of their pages are never touched, so that they take no memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <climits>

#include "kernels/gemm.h"
#include "kernels/spmm.h"
#include "kernels/use_targets.h"

namespace cgcn::kernels {
namespace {

template <class T>
class Reserved {
 public:
  explicit Reserved(size_t size) : bytes_(size * sizeof(T)) {
    void* const place =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = place == MAP_FAILED ? nullptr : static_cast<T*>(place);
  }
  ~Reserved() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

TEST(Large, AggregationReachesEveryRowAndEntry) {
  constexpr uint32_t kRows = 70'000'000, kColumns = 64;  // 4.48 billion numbers
  constexpr uint64_t kSkipped = (uint64_t{1} << 32) + 5;
  static_assert(uint64_t{kRows} * kColumns > UINT32_MAX);
  const Reserved<float> source(size_t{kRows} * kColumns), values(kSkipped + 3);
  const Reserved<uint32_t> indices(kSkipped + 3);
  if (source.data() == nullptr || values.data() == nullptr || indices.data() == nullptr)
    GTEST_SKIP() << "no address space for it";
  const uint32_t far[] = {3, kRows - 1, kRows - 2};
  std::vector<float> expected(kColumns, 0.0f);
  for (size_t k = 0; k < 3; ++k) {
    indices.data()[kSkipped + k] = far[k];
    values.data()[kSkipped + k] = static_cast<float>(k + 1);
    for (size_t c = 0; c < kColumns; ++c) {
      source.data()[size_t{far[k]} * kColumns + c] = static_cast<float>(100 * k + c);
      expected[c] += static_cast<float>((k + 1) * (100 * k + c));
    }
  }
  const uint64_t offsets[] = {kSkipped, kSkipped + 3};
  std::vector<float> out(kColumns, -1.0f);
  aggregate({1, kRows, offsets, indices.data(), values.data()}, {source.data(), kRows, kColumns}, {0, 1},
            {out.data(), 1, kColumns});
  EXPECT_EQ(out, expected);
}

// A count that BLAS's 32 bits do not hold is noticed before anything is read.
TEST(Large, ProductsBeyondTheCountsOfBlasAreRefused) {
  float value = 1;
  const size_t rows = size_t{INT_MAX} + 1;
  use_targets(HWY_STATIC_TARGET);  // OpenBLAS, not our own product
  EXPECT_THROW(multiply_by_transpose_of({&value, rows, 1}, {&value, rows, 1}, {&value, 1, 1}, 0.0f), std::logic_error);
  EXPECT_THROW(multiply({&value, 1, 1, rows}, {&value, 1, 1}, {&value, 1, 1}, 0.0f), std::logic_error);
  use_targets(0);
}

}  // namespace
}  // namespace cgcn::kernels
