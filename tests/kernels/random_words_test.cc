// Words in bulk are those that come one by one, for every instruction set that the machine has.
#include "kernels/random_words.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <vector>

namespace cgcn {
namespace {

TEST(RandomWords, AreThoseOfTheStream) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const size_t size : {0, 1, 3, 4, 5, 31, 32, 33, 64, 1001}) {
      std::vector<uint32_t> words(size + 1, 77);
      kernels::draw_words({11, Purpose::kSample, 1, 2, 3}, std::span(words).first(size));
      Random random(11, Purpose::kSample, 1, 2, 3);
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(words[i], random.next()) << size << " " << i;
      EXPECT_EQ(words[size], 77u);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace cgcn
