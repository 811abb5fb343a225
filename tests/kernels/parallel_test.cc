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

TEST_P(ParallelLoops, AnExceptionOfOnePartArrivesAfterTheOthers) {
  std::atomic<int> finished{0};
  EXPECT_THROW(parallel_tiles(20,
                              [&](size_t i) {
                                if (i == 7) throw Error("bad tile");
                                ++finished;
                              }),
               Error);
  EXPECT_EQ(finished, 19);
}

TEST_P(ParallelLoops, ACheckThatFailsInABlockOfRowsArrives) {
  std::atomic<size_t> rows{0};
  EXPECT_THROW(parallel_rows(95, 10,
                             [&](RowRange range) {
                               CGCN_CHECK(range.begin != 40);
                               rows += range.end - range.begin;
                             }),
               std::logic_error);
  EXPECT_EQ(rows, 85u);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelLoops, testing::Values(1, 4));

}  // namespace
}  // namespace cgcn::kernels
