#include "train/train_options.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "common/error.h"
#include "common/memory.h"

namespace cgcn {
namespace {

constexpr uint64_t kSmallGraph = 10'000;  // nodes

}  // namespace

void TrainOptions::list_options(OptionList& list) {
  list.begin_group("Training");
  list.add("per-batch", &per_batch, "clusters q in a batch; 0: a thirtieth of them, from 1 to 10")
      .range(0, 4e9)
      .value("Q")
      .common();
  list.add_choice("draw", &draw,
                  {{"permutation", ClusterDraw::kPermutation}, {"independent", ClusterDraw::kIndependent}},
                  "each epoch takes every cluster once, or every batch draws its own");
  list.add("epochs", &epochs, "passes over all clusters, or over all training nodes").range(1, 1e9).common();
  list.add("lr", &learning_rate, "learning rate").range(0, 1e3).common();
  list.add_choice(
      "schedule", &schedule,
      {{"constant", LearningRateSchedule::kConstant},
       {"cosine", LearningRateSchedule::kCosine},
       {"step", LearningRateSchedule::kStep}},
      "learning-rate schedule: cosine falls from lr towards 0, which it would reach one epoch after the last; "
      "step multiplies the rate by a factor now and then");
  list.add("step-epochs", &step_epochs, "schedule step: epochs between two steps").range(1, 1e9);
  list.add("step-factor", &step_factor, "schedule step: what a step multiplies the rate by").range(0, 1);
  list.add("clip", &clip, "scale a gradient of a larger norm down to this; 0: never").range(0, 1e30);
  list.add("patience", &patience, "stop after so many validations without a better score; 0: never")
      .range(0, 1e9)
      .common();
  list.add_choice("keep", &keep, {{"best", KeptModel::kBest}, {"last", KeptModel::kLast}},
                  "the model that is tested: best on validation, or that of the last epoch");
  list.add("seed", &seed, "of weights, dropout and batches (--partition-seed: of the partition)")
      .range(0, 9e18)
      .common();
  list.add("standardise", &standardise, "shift and scale each feature column to mean 0, deviation 1 on training nodes")
      .common();
  list.add("normalise-rows", &normalise_rows, "divide each feature row by its sum");
  list.add("checkpoint-seconds", &checkpoint_seconds, "save the run so often; 0: after every epoch").range(0, 1e9);

  evaluation.list_options(list);
  list.add("eval-every", &eval_every, "epochs between validations; 0: every epoch, or every few for a large graph")
      .range(0, 1e9);
}

void EvaluationOptions::list_options(OptionList& list) {
  list.begin_group("Evaluation");
  list.add_choice("evaluation", &kind, {{"exact", EvaluationKind::kExact}, {"blocks", EvaluationKind::kBlocks}},
                  "on the whole graph, or cheaper on METIS blocks without the links between them");
  list.add("evaluation-blocks", &blocks, "with --evaluation blocks: how many").range(1, 1e6);
}

uint32_t TrainOptions::clusters_per_batch(uint32_t num_clusters) const {
  return per_batch > 0 ? std::min(per_batch, num_clusters) : std::clamp(num_clusters / 30, 1u, 10u);
}

double TrainOptions::learning_rate_at(uint32_t epoch) const {
  switch (schedule) {
    case LearningRateSchedule::kConstant:
      return learning_rate;
    case LearningRateSchedule::kCosine:
      return learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * epoch / epochs));
    case LearningRateSchedule::kStep:
      return learning_rate * std::pow(step_factor, epoch / step_epochs);
  }
  return learning_rate;
}

uint32_t TrainOptions::evaluation_interval(uint64_t nodes, uint64_t training_rows) const {
  if (eval_every > 0) return eval_every;
  if (nodes <= kSmallGraph) return 1;
  const uint64_t interval = (5 * nodes + 3 * training_rows - 1) / std::max<uint64_t>(1, 3 * training_rows);
  return static_cast<uint32_t>(std::clamp<uint64_t>(interval, 1, UINT32_MAX));
}

}  // namespace cgcn
