// Short trainings that tell settings apart.
#include "train/trial.h"

#include <cmath>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/threads.h"
#include "train/selection.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

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

}  // namespace
}  // namespace cgcn
