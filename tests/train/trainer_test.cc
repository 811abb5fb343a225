// Training on a small generated graph: repeatable, resumable, and refusing what it must.
#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/threads.h"
#include "generate/generate.h"
#include "support.h"
#include "train/predictor.h"

namespace cgcn {
namespace {

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    log::set_level(log::Level::kQuiet);
    options_.model.layers = 3;
    options_.model.hidden = 16;
    options_.partition.parts = 4;
    options_.train.per_batch = 2;
    options_.train.epochs = 3;
  }
  ~TrainerTest() override {
    clear_interrupt();
    set_thread_count(0);
    log::set_level(log::Level::kNormal);
  }

  fs::path make_store(bool multi_label = false, uint64_t seed = 1) {
    const fs::path path = folder_ / fmt::format("store-{}-{}", multi_label, seed);
    GenerateOptions options;
    options.nodes = 600;
    options.multi_label = multi_label;
    options.seed = seed;
    if (!fs::exists(path)) generate_store(path, options, StagedDirectory::Existing::kRefuse);
    return path;
  }
  TrainingSummary train(const fs::path& store, const std::string& run) {
    const Store opened(store);
    return Trainer(opened, options_, RunDirectory::create(folder_ / run, "test")).run();
  }
  std::vector<float> weights(const fs::path& file) {
    const SavedModel saved = load_model(file);
    return {saved.model->values().begin(), saved.model->values().end()};
  }

  test::TemporaryFolder folder_;
  RunOptions options_;
};

TEST_F(TrainerTest, LearnsMoreThanTheLargestClass) {
  options_.train.epochs = 15;
  const TrainingSummary summary = train(make_store(), "run");
  EXPECT_GT(summary.evaluation->test.scores().micro_f1, 0.6);
  EXPECT_EQ(summary.epochs, 15u);
  EXPECT_EQ(read_metrics(folder_ / "run" / "metrics.jsonl").size(), 15u);
}

TEST_F(TrainerTest, ThreadsDoNotChangeABit) {
  for (const bool standardise : {false, true}) {
    options_.train.standardise = standardise;
    set_thread_count(1);
    train(make_store(), fmt::format("one-{}", standardise));
    set_thread_count(3);
    train(make_store(), fmt::format("three-{}", standardise));
    for (const auto& file : {last_checkpoint, best_checkpoint})
      EXPECT_EQ(weights(file(folder_ / fmt::format("one-{}", standardise))),
                weights(file(folder_ / fmt::format("three-{}", standardise))));
  }
}

TEST_F(TrainerTest, AnInterruptedRunGoesOnBitForBit) {
  const Store store(make_store());
  train(store.path(), "whole");
  // Stops after every single step, the first one included.
  { Trainer made(store, options_, RunDirectory::create(folder_ / "pieces", "test")); }
  for (bool done = false; !done;) {
    Trainer trainer(store, options_, RunDirectory::reopen(folder_ / "pieces"));
    const bool steps_left = trainer.state().epoch < 3 && trainer.state().batch < trainer.batches_per_epoch();
    if (steps_left) request_interrupt();
    try {
      trainer.run([](const EpochRecord& record) {
        if (record.epoch < 3) request_interrupt();
      });
      done = true;
    } catch (const Interrupted& stop) {
      EXPECT_THAT(stop.what(), testing::HasSubstr("--resume"));
    }
    clear_interrupt();
  }
  EXPECT_EQ(weights(last_checkpoint(folder_ / "whole")), weights(last_checkpoint(folder_ / "pieces")));
  EXPECT_EQ(weights(best_checkpoint(folder_ / "whole")), weights(best_checkpoint(folder_ / "pieces")));
  const auto whole = read_metrics(folder_ / "whole" / "metrics.jsonl"),
             pieces = read_metrics(folder_ / "pieces" / "metrics.jsonl");
  ASSERT_EQ(whole.size(), pieces.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i]["loss"], pieces[i]["loss"]);
    EXPECT_EQ(whole[i]["validation"], pieces[i]["validation"]);
  }
}

}  // namespace
}  // namespace cgcn
