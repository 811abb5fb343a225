// Threads, progress and interruption: what runs at the same time as something else. Also run under ThreadSanitizer.
#include "common/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/timer.h"
#include "process/signals.h"
#include "support.h"

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

TEST(ParallelBlocks, AnExceptionArrivesAfterThoseThatHadBegunHaveFinished) {
  constexpr int kBlocks = 100'000;
  for (const int threads : {1, 4}) {
    const ThreadCountScope scope(threads);
    std::atomic<int> begun{0}, finished{0};
    const auto work = [&](size_t begin, size_t) {
      ++begun;
      if (begin == 37) throw Error("bad row", "f");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      ++finished;
    };
    EXPECT_THROW(parallel_blocks(kBlocks, 1, work), Error);
    EXPECT_EQ(finished, begun - 1);
    EXPECT_LT(begun, kBlocks);  // the others are not begun
  }
}

TEST(ParallelBlocks, EveryOrderMeetsEveryBlockOnce) {
  for (const BlockOrder order : {BlockOrder::kAscending, BlockOrder::kNeighbours, BlockOrder::kInterleaved})
    for (const int threads : {1, 2, 3, 8})
      for (const size_t count : {0, 1, 2, 3, 7, 8, 9, 100}) {
        const ThreadCountScope scope(threads);
        std::vector<std::atomic<int>> met(count);
        parallel_for_each_block(count, order, [&](size_t i) { ++met[i]; });
        for (size_t i = 0; i < count; ++i) EXPECT_EQ(met[i], 1) << i << " of " << count << " on " << threads;
      }
}

TEST(ParallelBlocks, ManyThreadsTakePart) {
  const ThreadCountScope scope(4);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int round = 0; round < 1000 && seen.size() < 3; ++round)
    parallel_blocks(64, 1, [&](size_t, size_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  EXPECT_GE(seen.size(), 3u);
}

TEST(ParallelBlocks, ALoopInsideOfALoopRunsOnItsThread) {
  const ThreadCountScope scope(4);
  std::atomic<int> inner{0}, elsewhere{0};
  parallel_blocks(16, 1, [&](size_t, size_t) {
    const auto self = std::this_thread::get_id();
    parallel_blocks(16, 1, [&](size_t, size_t) {
      ++inner;
      if (std::this_thread::get_id() != self) ++elsewhere;
    });
  });
  EXPECT_EQ(inner, 256);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ParallelBlocks, LoopsOfSeveralThreadsRunSideBySide) {
  std::vector<std::thread> threads;
  std::atomic<size_t> sum{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      const ThreadCountScope scope(3);
      for (int round = 0; round < 200; ++round)
        parallel_blocks(100, 7, [&](size_t begin, size_t end) { sum += end - begin; });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 6u * 200 * 100);
}

// A thread without a processor keeps nobody waiting: with seven threads on a core or two that are busy, OpenMP took a
// hundred times as long.
TEST(ParallelBlocks, BusyCoresSlowALoopByNoMoreThanTheyTake) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int t = 0; t < usable_cores(); ++t)
    others.emplace_back([&] {
      while (!stop) {
      }
    });
  const auto seconds_with = [](int threads) {
    const ThreadCountScope scope(threads);
    const Timer timer;
    for (int round = 0; round < 300; ++round)
      parallel_for_each_block(8, BlockOrder::kNeighbours, [](size_t) {
        const Timer block;
        while (block.seconds() < 5e-6) {
        }
      });
    return timer.seconds();
  };
  const double alone = seconds_with(1), shared = seconds_with(usable_cores());
  stop = true;
  for (std::thread& thread : others) thread.join();
  EXPECT_LT(shared, 10 * alone + 1);
}

class ContainerTest : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_.path() / file).parent_path());
    std::ofstream(root_.path() / file) << text;
  }
  const fs::path& root() const { return root_.path(); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(ContainerTest, CoresAreThoseOfTheQuota) {
  const int all = usable_cores(root());
  EXPECT_GE(all, 1);
  write("proc/self/cgroup", "0::/docker/abc\n");
  write("sys/fs/cgroup/docker/abc/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root()), all);
  write("sys/fs/cgroup/docker/cpu.max", "100000 100000\n");  // of the group around it
  EXPECT_EQ(usable_cores(root()), 1);
  write("sys/fs/cgroup/docker/cpu.max", "25000 100000\n");  // less than a core is still one thread
  EXPECT_EQ(usable_cores(root()), 1);
  write("sys/fs/cgroup/docker/cpu.max", "6400000 100000\n");  // more than there are
  EXPECT_EQ(usable_cores(root()), all);
}

TEST_F(ContainerTest, CoresAreThoseOfTheQuotaInVersionOne) {
  const int all = usable_cores(root());
  write("proc/self/cgroup", "7:memory:/m\n4:cpu,cpuacct:/docker/abc\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root()), all);
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(usable_cores(root()), 1);
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
