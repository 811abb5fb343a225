// The gradient of several batches: against their single gradients in double precision, and for any number of ranks.
#include "train/slot_gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "dist/thread_group.h"
#include "nn/optimiser.h"
#include "nn/small_problem.h"

namespace cgcn {
namespace {

using test::InputKind;
using test::SmallProblem;

constexpr uint64_t kSeed = 5;

ModelOptions small_model() {
  ModelOptions options;
  options.layers = 3;
  options.hidden = 9;
  options.dropout = 0.2f;
  options.bias = true;
  return options;
}

// Batches of different sizes on the same features, one of them without labelled nodes.
struct Slots {
  std::vector<std::unique_ptr<SmallProblem>> problems;
  ModelShape shape;

  Slots(InputKind kind, bool multi_label, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      problems.push_back(std::make_unique<SmallProblem>(kind, 3, false, multi_label, 3, 11 + 3 * i));
      Batch& batch = problems.back()->batch;
      batch.index = i;
      if (i == 2) batch.loss_rows = {};
    }
    const SmallProblem& first = *problems.front();
    shape = {.input_columns = first.x.columns(),
             .sparse_input = first.sparse(),
             .num_classes = SmallProblem::kClasses,
             .multi_label = multi_label};
  }
  SlotReport compute(Model& model, uint32_t slot, const GradientPass& pass) const {
    const SmallProblem& p = *problems[slot];
    return {model.compute_gradients(p.batch, {p.x, p.aggregated, p.labels}, kSeed, pass), {}};
  }
};

class SlotGradientsTest : public testing::TestWithParam<std::tuple<InputKind, bool>> {};

TEST_P(SlotGradientsTest, AreThoseOfTheMeanLossOverAllLabelledNodes) {
  const auto [kind, multi_label] = GetParam();
  for (const uint32_t count : {1u, 2u, 3u, 6u}) {
    const Slots slots(kind, multi_label, count);
    Model model(small_model(), slots.shape, kSeed);
    // Each batch by itself, weighted by its labelled nodes.
    std::vector<double> expected(model.values().size(), 0);
    double loss = 0, labelled = 0;
    std::vector<uint32_t> touched;
    size_t most_touched = 0;
    for (uint32_t slot = 0; slot < count; ++slot) {
      Model alone(small_model(), slots.shape, kSeed);
      const StepResult result = slots.compute(alone, slot, {}).result;
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += double{alone.gradients()[i]} * result.labelled;
      loss += result.loss * result.labelled;
      labelled += result.labelled;
      const auto rows = alone.touched_rows(0).rows;
      most_touched = std::max(most_touched, rows.size());
      touched.insert(touched.end(), rows.begin(), rows.end());
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());

    dist::Group group;
    SlotGradients gradients(group, model);
    for (int step = 0; step < 2; ++step) {  // what is left of the step before does no harm
      const SlotTotal total = gradients.sum(
          count, [&](uint32_t slot, const GradientPass& pass) { return slots.compute(model, slot, pass); });
      EXPECT_LE(gradients.bytes(), SlotGradients::planned_bytes(model, count, 1) +
                                       SlotGradients::planned_row_bytes(model, most_touched, count, 1));
      EXPECT_NEAR(total.loss, loss / labelled, 1e-6);
      double largest = 0;
      for (const double value : expected) largest = std::max(largest, std::abs(value / labelled));
      EXPECT_GT(largest, 1e-3);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(model.gradients()[i] * total.scale, expected[i] / labelled, 2e-6 * largest) << i;
      if (slots.shape.sparse_input) {
        const auto rows = model.touched_rows(0).rows;
        EXPECT_EQ(std::vector<uint32_t>(rows.begin(), rows.end()), touched);
      }
    }
  }
}

// Weights after some steps, and whether a batch's gradient was all that counted.
std::vector<float> train(dist::Group& group, const Slots& slots, bool dense_adam) {
  Model model(small_model(), slots.shape, kSeed);
  OptimiserOptions options;
  options.dense = dense_adam;
  options.weight_decay = 0.01f;
  const auto optimiser = make_optimiser(options, model);
  SlotGradients gradients(group, model);
  // Steps of different sizes, so that some ranks have nothing to do in some of them.
  const auto all = static_cast<uint32_t>(slots.problems.size());
  for (const uint32_t count : {all, 1u, all, 2u, all}) {
    const SlotTotal total = gradients.sum(
        count, [&](uint32_t slot, const GradientPass& pass) { return slots.compute(model, slot, pass); },
        [&] { return StepSignal{.stop = count == 2}; });
    EXPECT_EQ(total.signal.stop, count == 2);
    EXPECT_EQ(total.slots.size(), count);
    EXPECT_GT(total.slots[count - 1].result.labelled, 0u);
    optimiser->step(model, 0.01f, static_cast<float>(total.scale));
  }
  return {model.values().begin(), model.values().end()};
}

TEST_P(SlotGradientsTest, HaveTheSameBitsForAnyNumberOfRanks) {
  const auto [kind, multi_label] = GetParam();
  for (const bool dense_adam : {false, true})
    for (const uint32_t count : {4u, 6u}) {
      const Slots slots(kind, multi_label, count);
      dist::Group one;
      const std::vector<float> expected = train(one, slots, dense_adam);
      for (const uint32_t ranks : {2u, 3u, 4u, 7u})
        test::run_ranks(ranks, [&](dist::Group& group) {
          EXPECT_EQ(train(group, slots, dense_adam), expected) << count << " slots, " << ranks << " ranks";
        });
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, SlotGradientsTest,
    testing::Combine(testing::Values(InputKind::kDense32, InputKind::kSparse, InputKind::kIdentity), testing::Bool()));

TEST(SlotGradients, EveryBatchBelongsToOneRank) {
  for (const uint32_t batches : {1u, 7u, 12u})
    for (const uint32_t per_step : {1u, 2u, 5u, 6u})
      for (const uint32_t ranks : {1u, 2u, 3u, 4u}) {
        std::map<uint32_t, uint32_t> owners;
        for (uint32_t rank = 0; rank < ranks; ++rank)
          for (uint32_t at = own_batch_from(0, batches, per_step, rank, ranks); at < batches;
               at = own_batch_from(at + 1, batches, per_step, rank, ranks))
            EXPECT_TRUE(owners.emplace(at, rank).second);
        EXPECT_EQ(owners.size(), batches);
      }
  EXPECT_EQ(own_batch_from(0, 12, 4, 1, 2), 2u);
  EXPECT_EQ(own_batch_from(4, 12, 4, 1, 2), 6u);
}

}  // namespace
}  // namespace cgcn
