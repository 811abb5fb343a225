// Threads, progress and interruption: what runs at the same time as something else. Also run under ThreadSanitizer.
#include "common/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/log.h"
#include "common/progress.h"

namespace cgcn {
namespace {

using Blocks = std::set<std::pair<size_t, size_t>>;

Blocks blocks_of(size_t n, size_t block) {
  Blocks seen;
  std::mutex mutex;
  parallel_blocks(n, block, [&](size_t begin, size_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(seen.emplace(begin, end).second) << "a block ran twice";
  });
  return seen;
}

TEST(ParallelBlocks, AreTheSameForAnyNumberOfThreads) {
  for (const size_t n : {0, 1, 9, 10, 11, 1000}) {
    Blocks expected;
    for (size_t begin = 0; begin < n; begin += 10) expected.emplace(begin, std::min(n, begin + 10));
    for (const int threads : {1, 2, 3, 8}) {
      set_thread_count(threads);
      EXPECT_EQ(thread_count(), threads);
      EXPECT_EQ(blocks_of(n, 10), expected) << n << " on " << threads;
    }
  }
  set_thread_count(0);
  EXPECT_GE(thread_count(), 1);
}

TEST(ParallelBlocks, AnExceptionArrivesAfterTheOthersHaveFinished) {
  set_thread_count(4);
  std::atomic<int> finished{0};
  EXPECT_THROW(parallel_blocks(100, 1,
                               [&](size_t begin, size_t) {
                                 if (begin == 37) throw Error("bad row", "f");
                                 ++finished;
                               }),
               Error);
  EXPECT_EQ(finished, 99);
  set_thread_count(0);
}

TEST(Progress, IsSilentWhenQuickAndCanBeAdvancedFromAnyThread) {
  testing::internal::CaptureStderr();
  {
    Progress progress("counting", 4000, "rows");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.advance();
        progress.set_note("loss 0.5");
      });
    for (std::thread& thread : threads) thread.join();
    progress.set_total(5000);
    progress.set(5000);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, SecondsAndCountsReadWell) {
  EXPECT_EQ(format_seconds(0), "0 ms");
  EXPECT_EQ(format_seconds(0.0123), "12 ms");
  EXPECT_EQ(format_seconds(0.84), "0.8 s");
  EXPECT_EQ(format_seconds(9.96), "10 s");
  EXPECT_EQ(format_seconds(59.4), "59 s");
  EXPECT_EQ(format_seconds(59.6), "1 min 00 s");
  EXPECT_EQ(format_seconds(200), "3 min 20 s");
  EXPECT_EQ(format_seconds(3900), "1 h 05 min");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(61'859'140), "61,859,140");
  EXPECT_EQ(format_count(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(Log, QuietSilencesNotesButNotWarnings) {
  testing::internal::CaptureStderr();
  log::set_level(log::Level::kQuiet);
  log::note("note {}", 1);
  log::warn("warning {}", 2);
  log::set_level(log::Level::kNormal);
  log::note("note {}", 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: warning 2\nnote 3\n");
}

TEST(Interrupt, IsRememberedUntilCleared) {
  EXPECT_NO_THROW(throw_if_interrupted());
  request_interrupt();
  EXPECT_TRUE(interrupted());
  EXPECT_THROW(throw_if_interrupted(), Interrupted);
  clear_interrupt();
  EXPECT_FALSE(interrupted());
}

TEST(InterruptDeathTest, TheFirstSignalIsNotedTheSecondEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EXIT(
        {
          install_interrupt_handler();
          std::raise(signal);
          if (!interrupted()) std::_Exit(3);
          std::raise(signal);
        },
        testing::KilledBySignal(signal), "");
}

}  // namespace
}  // namespace cgcn
