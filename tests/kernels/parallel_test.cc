#include "kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>

#include "common/error.h"

namespace cgcn::kernels {
namespace {

class ParallelLoops : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(0); }
};

TEST_P(ParallelLoops, AnExceptionOfOnePartArrivesAfterThoseThatHadBegun) {
  std::atomic<int> begun{0}, finished{0};
  const auto work = [&](size_t i) {
    ++begun;
    if (i == 7) throw Error("bad tile");
    ++finished;
  };
  EXPECT_THROW(parallel_tiles(20, work), Error);
  EXPECT_EQ(finished, begun - 1);
}

TEST_P(ParallelLoops, ACheckThatFailsInABlockOfRowsArrives) {
  std::atomic<size_t> begun{0}, finished{0};
  const auto work = [&](RowRange range) {
    begun += range.size();
    CGCN_CHECK(range.begin != 40);
    finished += range.size();
  };
  EXPECT_THROW(parallel_rows(95, 10, work), std::logic_error);
  EXPECT_EQ(finished, begun - 10);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelLoops, testing::Values(1, 4));

}  // namespace
}  // namespace cgcn::kernels
