#include "common/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgcn {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t columns(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

const ProgressState kTraining{.title = "Training",
                              .unit = "steps",
                              .note = "loss 0.1234  best validation F1 98.76 %",
                              .done = 4500,
                              .total = 10'000,
                              .begun = 0,
                              .seconds = 45,
                              .frame = 0};

TEST(ProgressLine, ShowsAllWhereThereIsRoom) {
  const std::string line = format_progress(kTraining, 200);
  for (const char* part : {"Training", "▕", " 45 %", "4,500 of 10,000 steps", "55 s left", "loss 0.1234", "98.76 %"})
    EXPECT_THAT(line, HasSubstr(part));
}

TEST(ProgressLine, LeavesOutWhatTellsLeastFirst) {
  const std::string eighty = format_progress(kTraining, 79);
  for (const char* part : {"Training", " 45 %", "55 s left", "loss 0.1234", "best validation F1 98.76 %"})
    EXPECT_THAT(eighty, HasSubstr(part));
  EXPECT_THAT(eighty, Not(HasSubstr("of 10,000")));
  const std::string forty = format_progress(kTraining, 45);
  for (const char* part : {"Training", " 45 %", "55 s left", "loss 0.1234"}) EXPECT_THAT(forty, HasSubstr(part));
  EXPECT_EQ(format_progress(kTraining, 14), "Training  45 %");
  for (size_t width = 1; width < 150; ++width) EXPECT_LE(columns(format_progress(kTraining, width)), width);
}

TEST(ProgressLine, TrainingCountsEpochs) {
  ProgressState state = kTraining;
  state.unit = "epochs";
  state.note = "loss 0.1234  best F1 98.76 %";
  state.total = 200 * 50;
  state.done = 90 * 50 + 49;  // the 91st is not done
  state.steps_per_unit = 50;
  EXPECT_THAT(format_progress(state), HasSubstr("Training  45 %  90/200 epochs"));
  const std::string eighty = format_progress(state, 79);
  for (const char* part : {"Training ▕", "90/200 epochs", " left", "loss 0.1234", "best F1 98.76 %"})
    EXPECT_THAT(eighty, HasSubstr(part));
  EXPECT_EQ(format_progress(state, 24), "Training  90/200 epochs");
  for (size_t width = 1; width < 150; ++width) EXPECT_LE(columns(format_progress(state, width)), width);
}

TEST(ProgressLine, NeverEndsWithinAPart) {
  for (size_t width = 14; width < 150; ++width) {
    const std::string line = format_progress(kTraining, width);
    EXPECT_TRUE(line.ends_with("45 %") || line.ends_with("left") || line.ends_with("0.1234") ||
                line.ends_with("98.76 %"))
        << line;
  }
}

// Half was done before; the speed is that of the other half.
TEST(ProgressLine, ResumedWorkCountsButDoesNotHurryTheClock) {
  ProgressState state = kTraining;
  state.begun = 4000;
  const std::string line = format_progress(state, 200);
  EXPECT_THAT(line, HasSubstr("4,500 of 10,000 steps"));
  EXPECT_THAT(line, HasSubstr("8 min 15 s left"));  // 500 steps in 45 s, 5,500 to go
  state.done = state.begun;
  EXPECT_THAT(format_progress(state, 200), Not(HasSubstr("left")));
}

TEST(ProgressLine, WithoutATotalThereIsElapsedTime) {
  ProgressState state{
      .title = "METIS", .unit = {}, .note = {}, .done = 0, .total = 0, .begun = 0, .seconds = 61, .frame = 3};
  EXPECT_EQ(format_progress(state), "METIS 1 min 01 s");
  EXPECT_THAT(format_progress(state, 79), testing::EndsWith(" METIS 1 min 01 s"));
}

}  // namespace
}  // namespace cgcn
