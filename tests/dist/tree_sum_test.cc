#include "dist/tree_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "dist/slot_sum.h"
#include "thread_group.h"

namespace cgcn::dist {
namespace {

// The definition, written as it reads: the sum of slots begin … begin + 2^level that exist.
float reference_sum(const std::vector<float>& slots, uint32_t begin, uint32_t level) {
  if (level == 0) return slots[begin];
  const uint32_t middle = begin + (1u << (level - 1));
  const float left = reference_sum(slots, begin, level - 1);
  return middle < slots.size() ? left + reference_sum(slots, middle, level - 1) : left;
}

float reference_sum(const std::vector<float>& slots) {
  uint32_t level = 0;
  while ((size_t{1} << level) < slots.size()) ++level;
  return reference_sum(slots, 0, level);
}

std::vector<std::vector<float>> random_slots(uint32_t slots, size_t floats, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values(slots, std::vector<float>(floats));
  for (auto& slot : values)
    for (float& value : slot) value = std::exp(4 * normal(random)) * normal(random);  // so that order matters
  return values;
}

std::vector<float> reference_totals(const std::vector<std::vector<float>>& slots) {
  std::vector<float> totals;
  for (size_t i = 0; i < slots[0].size(); ++i) {
    std::vector<float> column;
    for (const auto& slot : slots) column.push_back(slot[i]);
    totals.push_back(reference_sum(column));
  }
  return totals;
}

TEST(TreeSum, SlotsAreSharedOutWithoutGaps) {
  for (uint32_t slots = 0; slots <= 20; ++slots)
    for (uint32_t ranks = 1; ranks <= 9; ++ranks) {
      uint32_t next = 0;
      for (uint32_t r = 0; r < ranks; ++r) {
        const SlotRange range = slots_of(r, ranks, slots);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), (slots + ranks - 1) / ranks);
        EXPECT_GE(range.size(), slots / ranks);
        next = range.end;
      }
      EXPECT_EQ(next, slots);
    }
}

TEST(TreeSum, OneSubtreePerRankWhereSlotsAreAPowerOfTwoEach) {
  for (const uint32_t each : {1u, 2u, 4u, 8u})
    for (uint32_t ranks = 1; ranks <= 9; ++ranks)
      for (uint32_t r = 0; r < ranks; ++r)
        EXPECT_EQ(subtrees_of(slots_of(r, ranks, each * ranks), each * ranks).size(), 1u) << each << " " << ranks;
  EXPECT_EQ(subtrees_of({1, 3}, 6).size(), 2u);  // 1 and 2 belong to different halves
  EXPECT_EQ(subtrees_of({4, 7}, 7).size(), 1u);  // the end of the tree
}

TEST(SlotSum, HasTheBitsOfTheTreeForAnyNumberOfRanks) {
  for (uint32_t slots = 1; slots <= 13; ++slots) {
    const size_t floats = 100 + 37 * slots;
    const auto values = random_slots(slots, floats, slots);
    const std::vector<float> expected = reference_totals(values);
    for (const uint32_t ranks : {1u, 2u, 3u, 4u, 7u}) {
      test::run_ranks(ranks, [&](Group& group) {
        SlotSum sum(group, floats);
        std::vector<float> gradient(floats);
        for (int step = 0; step < 2; ++step) {  // buffers are used again
          sum.begin(slots);
          const size_t middle = floats / 3;
          for (uint32_t slot = sum.own().begin; slot < sum.own().end; ++slot) {
            gradient = values[slot];
            if (slot + 1 < sum.own().end) {
              sum.add(gradient);
            } else {
              sum.add_last(gradient, middle, floats);  // the later layers' gradients are there first
              sum.add_last(gradient, 0, middle);
            }
          }
          if (sum.own().size() == 0) {
            sum.add_nothing(middle, floats);
            sum.add_nothing(0, middle);
          }
          sum.finish(gradient);
          EXPECT_EQ(gradient, expected) << slots << " slots, " << ranks << " ranks, rank " << group.rank();
        }
        const std::vector<uint64_t> taken = group.all_gather_values(sum.bytes());
        EXPECT_EQ(*std::max_element(taken.begin(), taken.end()), SlotSum::planned_bytes(floats, slots, ranks));
      });
    }
  }
}

TEST(SlotSum, OrderMattersForTheseNumbers) {  // else the test above would say nothing
  const auto values = random_slots(8, 200, 1);
  std::vector<float> in_turn(200, 0);
  for (const auto& slot : values)
    for (size_t i = 0; i < slot.size(); ++i) in_turn[i] += slot[i];
  EXPECT_NE(in_turn, reference_totals(values));
}

TEST(SlotSum, SendsTwiceTheGradientLessARanksShare) {
  constexpr size_t kFloats = 16 * 4 * 100;
  test::run_ranks(4, [&](Group& group) {
    SlotSum sum(group, kFloats);
    std::vector<float> gradient(kFloats, 1);
    const uint64_t before = group.traffic().bytes_sent;
    sum.begin(8);
    sum.add(gradient);
    sum.add_last(gradient, 0, kFloats);
    sum.finish(gradient);
    EXPECT_EQ(group.traffic().bytes_sent - before, 2 * 3 * kFloats / 4 * sizeof(float));
    EXPECT_EQ(gradient[17], 8.0f);
  });
}

TEST(RowsSum, HasTheRowsOfAllSlotsAndTheBitsOfTheTree) {
  constexpr uint32_t kRows = 60, kColumns = 3;
  for (const uint32_t slots : {1u, 2u, 5u, 6u, 8u}) {
    const auto values = random_slots(slots, kRows * kColumns, slots);
    std::mt19937 random(slots);
    std::vector<std::vector<uint32_t>> numbers(slots);
    for (auto& slot : numbers)
      for (uint32_t row = 0; row < kRows; ++row)
        if (random() % 3 == 0) slot.push_back(row);
    std::vector<uint32_t> expected_numbers;
    std::vector<float> expected;
    for (uint32_t row = 0; row < kRows; ++row) {
      // Absent rows take no part: the reference is one of its own for each row, by recursion over those that have it.
      const std::function<std::optional<float>(uint32_t, uint32_t, uint32_t)> sum =
          [&](uint32_t begin, uint32_t size, uint32_t column) -> std::optional<float> {
        if (begin >= slots) return {};
        if (size == 1) {
          const bool has = std::find(numbers[begin].begin(), numbers[begin].end(), row) != numbers[begin].end();
          return has ? std::optional(values[begin][row * kColumns + column]) : std::nullopt;
        }
        const auto left = sum(begin, size / 2, column), right = sum(begin + size / 2, size / 2, column);
        return left && right ? std::optional(*left + *right) : left ? left : right;
      };
      if (!sum(0, 16, 0)) continue;
      expected_numbers.push_back(row);
      for (uint32_t c = 0; c < kColumns; ++c) expected.push_back(*sum(0, 16, c));
    }
    for (const uint32_t ranks : {1u, 2u, 3u, 4u})
      test::run_ranks(ranks, [&](Group& group) {
        RowsSum sum(group, kRows, kColumns);
        sum.begin(slots);
        const SlotRange own = slots_of(group.rank(), ranks, slots);
        for (uint32_t slot = own.begin; slot < own.end; ++slot) sum.add(numbers[slot], values[slot].data());
        const RowsSum::Rows& total = sum.finish();
        EXPECT_EQ(total.numbers, expected_numbers);
        EXPECT_EQ(total.values, expected) << slots << " slots, " << ranks << " ranks";
      });
  }
}

}  // namespace
}  // namespace cgcn::dist
