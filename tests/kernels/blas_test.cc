#include "kernels/blas.h"

#include <gtest/gtest.h>

namespace cgcn::kernels {
namespace {

TEST(Blas, IsTheOpenMpBuild) { EXPECT_TRUE(blas_uses_openmp()); }

TEST(Blas, HasKernelsThatFitTheCpu) {
  prepare_blas();
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  EXPECT_NE(blas_core_name(), "Prescott");
#endif
}

}  // namespace
}  // namespace cgcn::kernels
