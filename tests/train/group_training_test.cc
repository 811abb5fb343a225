// Training on several ranks: the same weights, scores and curves as in one process, also after a stop and on another
// number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/session.h"
#include "dist/thread_group.h"
#include "train/run_directory.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

using testing::HasSubstr;

class GroupTrainingTest : public test::TrainingTest {
 protected:
  GroupTrainingTest() {
    options_.partition.parts = 14;
    options_.train.per_batch = 1;
    options_.train.checkpoint_seconds = 0;
  }
  // Every rank has its own store; the first one has the run.
  void train_in_group(uint32_t ranks, const std::string& run, bool resume = false) {
    const fs::path store = make_store();
    test::run_ranks(ranks, [&](dist::Group& group) {
      const ThreadCountScope threads(1);
      Session nobody({}, {});
      const SessionScope scope(group.is_first() ? nullptr : &nobody);
      const Store opened(store);
      RunDirectory directory = !group.is_first() ? RunDirectory::nowhere()
                               : resume          ? RunDirectory::reopen(folder_ / run)
                                                 : RunDirectory::create(folder_ / run, "test");
      try {
        Training training(opened, options_, std::move(directory), group);
        const TrainingSummary summary = training.run();
        EXPECT_EQ(summary.ranks.size(), ranks > 1 ? ranks : 0);
      } catch (const dist::GroupInterrupted&) {
      }
    });
  }
  // What is the same for any number of ranks: weights, and losses and scores of every epoch.
  std::string outcome(const std::string& run) {
    std::string text;
    for (const char* file : {"last.safetensors", "best.safetensors"}) {
      const std::vector<float> values = weights(folder_ / run / file);
      text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    for (const nlohmann::json& record : read_metrics(folder_ / run / "metrics.jsonl"))
      text += fmt::format("{} {} {}\n", record.at("epoch").dump(), record.at("loss").dump(),
                          record.at("validation").dump());
    return text;
  }
};

TEST_F(GroupTrainingTest, HasTheBitsOfOneProcess) {
  std::vector<std::string> outcomes;
  for (const uint32_t slots : {1u, 4u, 6u}) {
    options_.train.batches_per_step = slots;
    train(make_store(), fmt::format("one-{}", slots));
    const std::string expected = outcome(fmt::format("one-{}", slots));
    for (const uint32_t ranks : {2u, 3u, 4u}) {
      const std::string run = fmt::format("{}-{}", slots, ranks);
      train_in_group(ranks, run);
      EXPECT_EQ(outcome(run), expected) << slots << " slots, " << ranks << " ranks";
    }
    outcomes.push_back(expected);
  }
  EXPECT_NE(outcomes[0], outcomes[1]);
  EXPECT_NE(outcomes[1], outcomes[2]);
}

// The statistics of a step's batches are added up as gradients are.
TEST_F(GroupTrainingTest, BatchNormHasTheBitsOfOneProcess) {
  options_.model.batch_norm = true;
  options_.train.batches_per_step = 4;
  train(make_store(), "one");
  train_in_group(3, "three");
  EXPECT_EQ(outcome("three"), outcome("one"));
}

TEST_F(GroupTrainingTest, ContinuesOnAnotherNumberOfRanks) {
  options_.train.batches_per_step = 6;
  options_.train.epochs = 4;
  train(make_store(), "whole");
  options_.train.epochs = 2;
  train_in_group(3, "stopped");
  options_.train.epochs = 4;
  train_in_group(2, "stopped", /*resume=*/true);
  EXPECT_EQ(outcome("stopped"), outcome("whole"));
}

TEST_F(GroupTrainingTest, AnInterruptOfTheFirstSavesAndStopsAll) {
  options_.train.batches_per_step = 4;
  train(make_store(), "whole");
  request_interrupt();
  train_in_group(2, "stopped");
  EXPECT_EQ(load_model(folder_ / "stopped" / "last.safetensors").state.step, 1u);
  clear_interrupt();
  train_in_group(4, "stopped", /*resume=*/true);
  EXPECT_EQ(outcome("stopped"), outcome("whole"));
}

TEST_F(GroupTrainingTest, DifferentStoresAreRefusedByName) {
  const fs::path one = make_store(false, 1), other = make_store(false, 2);
  test::run_ranks(2, [&](dist::Group& group) {
    const Store opened(group.is_first() ? one : other);
    const std::string message = test::message_of<dist::GroupError>([&] {
      Training(opened, options_,
               group.is_first() ? RunDirectory::create(folder_ / "refused", "test") : RunDirectory::nowhere(), group);
    });
    EXPECT_THAT(message, HasSubstr("the content of the graph store"));
    EXPECT_THAT(message, HasSubstr("on host-0"));
    EXPECT_THAT(message, HasSubstr("on host-1"));
  });
  EXPECT_FALSE(fs::exists(folder_ / "refused"));
}

TEST_F(GroupTrainingTest, VrGcnIsRefusedWithAReason) {
  options_.method.method = Method::kVrGcn;
  options_.train.batches_per_step = 2;
  EXPECT_THAT(test::message_of<Error>([&] { train(make_store(), "refused"); }), HasSubstr("history"));
  options_.train.batches_per_step = 1;
  const fs::path store = make_store();
  test::run_ranks(2, [&](dist::Group& group) {
    const Store opened(store);
    EXPECT_THAT(test::message_of<dist::GroupError>([&] {
                  Training(
                      opened, options_,
                      group.is_first() ? RunDirectory::create(folder_ / "refused", "test") : RunDirectory::nowhere(),
                      group);
                }),
                HasSubstr("one process"));
  });
}

TEST_F(GroupTrainingTest, OtherMethodsHaveTheBitsOfOneProcess) {
  for (const Method method : {Method::kFullBatch, Method::kSgd, Method::kGraphSage, Method::kFastGcn}) {
    options_.method.method = method;
    options_.method.targets = 40;
    options_.method.layer_nodes = 30;
    options_.train.batches_per_step = 3;
    options_.train.epochs = 2;
    const std::string name = std::to_string(static_cast<int>(method));
    train(make_store(), "one-" + name);
    train_in_group(2, "two-" + name);
    EXPECT_EQ(outcome("two-" + name), outcome("one-" + name)) << name;
  }
}

}  // namespace
}  // namespace cgcn
