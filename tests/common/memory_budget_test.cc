#include "common/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/memory.h"
#include "support.h"

namespace cgcn {
namespace {

constexpr uint64_t kMega = uint64_t{1} << 20;

TEST(MemoryPlan, KeepsWhatFitsInTheOrderOfTheOffers) {
  MemoryPlan plan;
  plan.need("program", 50 * kMega);
  const size_t links = plan.offer("links", 100 * kMega, 1 * kMega);
  const size_t x = plan.offer("X", 200 * kMega, 2 * kMega);
  const size_t small = plan.offer("small", 10 * kMega, 3 * kMega);
  plan.need_at_times("evaluation", 30 * kMega);
  EXPECT_EQ(plan.least(), (50 + 1 + 2 + 3 + 30) * kMega);
  plan.settle(170 * kMega, "this");
  EXPECT_TRUE(plan.in_memory(links));
  EXPECT_FALSE(plan.in_memory(x));
  EXPECT_TRUE(plan.in_memory(small));
  EXPECT_EQ(plan.taken(), (50 + 100 + 2 + 10) * kMega);
  EXPECT_EQ(plan.left_at_times(), (170 - 50 - 2) * kMega);  // mapped arrays are given back for that time
  EXPECT_EQ(
      plan.text(),
      "memory 170 MiB: program 50.0 MiB, links in memory 100 MiB, X from disk 200 MiB (buffers 2.0 MiB), small in "
      "memory 10.0 MiB, evaluation what is left");
}

TEST(MemoryPlan, ARefusalNamesTheSmallestBudget) {
  MemoryPlan plan;
  plan.need("program", 50 * kMega + 1);
  plan.offer("links", 100 * kMega, 1 * kMega);
  EXPECT_EQ(test::message_of<Error>([&] { plan.settle(40 * kMega, "this training"); }),
            "--memory: is too little for this training\nhint: --memory 55M or more");
  plan.settle(52 * kMega, "this training");
}

TEST(MemoryOptions, ASizeOrWhatIsFree) {
  MemoryOptions options;
  EXPECT_GT(options.budget(), memory_figures().rss);
  OptionList list;
  options.list_options(list);
  list.set("memory", "2200M", "--memory");
  EXPECT_EQ(options.budget(), 2200 * kMega);
  EXPECT_THAT(test::message_of<Error>([&] { list.set("memory", "much", "--memory"); }), testing::HasSubstr("2200M"));
}

}  // namespace
}  // namespace cgcn
