#include "common/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace cgcn {
namespace {

// Known answers published with Random123 (kat_vectors, philox4x32 10 rounds).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsOfOtherPurposesAndKeysDiffer) {
  EXPECT_NE(Random(1, Purpose::kSplit).next64(), Random(1, Purpose::kDropout).next64());
  EXPECT_NE(Random(1, Purpose::kSplit, 0, 1).next64(), Random(1, Purpose::kSplit, 1, 0).next64());
  EXPECT_EQ(Random(1, Purpose::kSplit, 2, 3).next64(), Random(1, Purpose::kSplit, 2, 3).next64());
}

TEST(Random, BelowIsUniform) {
  Random random(7, Purpose::kTest);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Random, NormalHasUnitVariance) {
  Random random(7, Purpose::kTest);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
}

TEST(Random, ShuffleIsAPermutation) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  Random(3, Purpose::kTest).shuffle(std::span(shuffled));
  EXPECT_NE(items, shuffled);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(items, shuffled);
}

}  // namespace
}  // namespace cgcn
