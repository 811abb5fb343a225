#include "kernels/blas.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/random.h"
#include "kernels/gemm.h"
#include "kernels/instruction_sets.h"
#include "kernels/use_targets.h"

namespace cgcn::kernels {
namespace {

// A serial build without locks mixes up the buffers of concurrent products.
TEST(Blas, ProductsOfManyThreadsAtOnceAreRight) {
  constexpr size_t n = 300;
  std::vector<float> a(n * n), b(n * n), expected(n * n);
  Random random(1, Purpose::kTest);
  for (float& value : a) value = random.uniform();
  for (float& value : b) value = random.uniform();
  use_targets(HWY_STATIC_TARGET);  // OpenBLAS, not our own product
  multiply({a.data(), n, n}, {b.data(), n, n}, {expected.data(), n, n});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      std::vector<float> c(n * n);
      for (int i = 0; i < 60; ++i) {
        multiply({a.data(), n, n}, {b.data(), n, n}, {c.data(), n, n});
        if (c != expected) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  use_targets(0);
}

TEST(BlasDeathTest, ALimitOnAddressSpaceIsAMessageNotAHang) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take terabytes of address space";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = size_t{150} << 20;
        limit.rlim_max = RLIM_INFINITY;
        ::setrlimit(RLIMIT_AS, &limit);
        ::alarm(20);
        try {
          prepare_blas();
        } catch (const Error& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(7);
        }
      },
      testing::ExitedWithCode(7), "ulimit -v.*address space");
}

TEST(Blas, HasKernelsThatFitTheCpu) {
  prepare_blas();
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  EXPECT_NE(blas_core_name(), "Prescott");
#endif
}

TEST(InstructionSets, MachinesAgreeOnWhatAllHave) {
  const InstructionSets new_one{0b111000, "SkylakeX", "0.3.21"}, old_one{0b110000, "Zen", "0.3.21"};
  const std::vector<InstructionSets> same{new_one, new_one}, different{new_one, old_one};
  EXPECT_EQ(common_instruction_sets(same), new_one);
  const InstructionSets common = common_instruction_sets(different);
  EXPECT_EQ(common.vector_targets, 0b110000);
  EXPECT_NE(common.blas_core, "SkylakeX");
  EXPECT_FALSE(own_instruction_sets().blas_version.empty());
}

// In a process of its own: the choice is for good.
TEST(InstructionSetsDeathTest, AreUsedFromThenOn) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "this CPU has no AVX2";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        InstructionSets sets = own_instruction_sets();
        const int64_t best = sets.vector_targets & -sets.vector_targets;
        sets.vector_targets &= ~best;
        sets.blas_core = sets.blas_core == "Haswell" ? "Nehalem" : "Haswell";
        use_instruction_sets(sets);
        std::vector<float> ones(64 * 64, 1);
        std::vector<float> product(64 * 64);
        multiply({ones.data(), 64, 64}, {ones.data(), 64, 64}, {product.data(), 64, 64});
        std::_Exit(own_instruction_sets() == sets && product[5] == 64 ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
#endif
}

}  // namespace
}  // namespace cgcn::kernels
