// Short trainings that tell settings apart.
#include "train/trial.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/threads.h"
#include "train/selection.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

using testing::HasSubstr;

class TrialTest : public test::TrainingTest {};

TEST_F(TrialTest, ScoreIsThatOfATrainingForAnyNumberOfThreads) {
  const fs::path path = make_store();
  options_.train.keep = KeptModel::kLast;
  options_.partition.transductive = true;
  options_.train.smooth = Smoothing::kBoth;
  const TrainingSummary summary = train(path, "run");
  const double expected = summary.evaluation->validation.scores().micro_f1;
  const Store store(path);
  for (const unsigned threads : {1u, 2u}) {
    set_thread_count(threads);
    uint32_t epochs = 0;
    EXPECT_EQ(score_settings(store, options_, [&] { ++epochs; }), expected);
    EXPECT_EQ(epochs, options_.train.epochs);
  }
}

TEST_F(TrialTest, IsStoppedByTheUser) {
  const Store store(make_store());
  EXPECT_THROW(score_settings(store, options_, [] { request_interrupt(); }), Interrupted);
}

// Ten nodes say little, ten thousand much; an error has no deviation that counts would give.
TEST_F(TrialTest, MarginShrinksWithTheNodesThatAreCounted) {
  const Store store(make_store());
  const Dataset& data = store.dataset();
  const auto nodes = static_cast<double>(data.split_sizes()[1]);
  EXPECT_NEAR(score_margin(0.8, data, SelectBy::kMicroF1), std::sqrt(0.16 / nodes), 1e-3);
  EXPECT_GT(score_margin(1, data, SelectBy::kMicroF1), 1 / nodes);  // one node more says nothing
  EXPECT_NEAR(score_margin(-2, data, SelectBy::kLoss), 0.02, 1e-12);
}

TEST_F(TrialTest, NodesWithoutALabelDoNotCountInTheMargin) {
  const Store store(make_store());
  Dataset data = store.dataset();
  const double all = score_margin(0.8, data, SelectBy::kMicroF1);
  std::vector<int32_t> classes(data.labels.classes().begin(), data.labels.classes().end());
  for (NodeId v = 0, seen = 0; v < data.num_nodes(); ++v)
    if (data.role(v) == Role::kValidation && seen++ % 4 != 0) classes[v] = -1;
  data.labels = Labels::single(std::move(classes), data.labels.num_classes());
  EXPECT_NEAR(score_margin(0.8, data, SelectBy::kMicroF1), 2 * all, all / 10);
}

TEST_F(TrialTest, TheFirstStaysUnlessAnotherIsBetterByMoreThanChance) {
  const Store store(make_store());
  const Dataset& data = store.dataset();
  Trials trials{.list = {{"first", 0.5, {}}, {"near", 0.51, {}}, {"slow", 0.2, {}}}};
  ASSERT_GT(score_margin(0.5, data, trials.by), 0.01);
  EXPECT_EQ(trials.best_of_short(data), 0u);
  EXPECT_THAT(trials.text(), HasSubstr("first 50.00 %, near 51.00 %, slow 20.00 %: first stays: no other is better"));
  trials.list.push_back({"fast", 0.9, {}});
  EXPECT_EQ(trials.best_of_short(data), 3u);
  EXPECT_TRUE(trials.are_to_be_compared(3));
  EXPECT_FALSE(trials.are_to_be_compared(0));
  trials.list[0].longer = 0.95, trials.list[3].longer = 0.94;
  EXPECT_THAT(trials.text(), HasSubstr("after twice as many epochs first 95.00 %, fast 94.00 %: first stays"));
  EXPECT_EQ(trials.describe()["networks"][3]["score_of_longer_trial"], 0.94);
  trials.list[0] = {"first", -std::numeric_limits<double>::infinity(), {}};  // it failed: any other will do
  EXPECT_EQ(trials.best_of_short(data), 3u);
  EXPECT_FALSE(trials.are_to_be_compared(3));
  EXPECT_THAT(trials.text(), HasSubstr("first failed"));
}

}  // namespace
}  // namespace cgcn
