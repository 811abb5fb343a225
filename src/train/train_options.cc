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
  const auto steps = [this] { return schedule == LearningRateSchedule::kStep; };
  const auto comes_to_a_step = [this, steps] { return !steps() || step_epochs < epochs; };
  constexpr const char* kNoSteps = "only --schedule step takes it";
  constexpr const char* kTooLate = "the first step would come after the last epoch";
  list.add("per-batch", &per_batch, "clusters per batch (q); 0: one thirtieth of them, 1 to 10")
      .range(0, 4e9)
      .value("Q");
  list.add_choice("draw", &draw,
                  {{"permutation", ClusterDraw::kPermutation}, {"independent", ClusterDraw::kIndependent}},
                  "permutation: each epoch uses every cluster once; independent: each batch draws its own");
  list.add("batches-per-step", &batches_per_step,
           "batches S whose labelled nodes make the loss of a step; default under mpirun: the number of processes. "
           "The result depends on S, not on the number of processes")
      .range(1, 4e9)
      .value("S");
  list.add("epochs", &epochs, "passes over the training nodes")
      .range(1, 1e9)
      .common()
      .resumable([this] { return schedule != LearningRateSchedule::kCosine; }, "the cosine schedule depends on it");
  list.add("lr", &learning_rate, "learning rate").range(0, 1e3).common();
  list.add_choice("schedule", &schedule,
                  {{"constant", LearningRateSchedule::kConstant},
                   {"cosine", LearningRateSchedule::kCosine},
                   {"step", LearningRateSchedule::kStep}},
                  "learning-rate schedule; cosine ends near 0 after the last epoch")
      .needs([this] { return schedule != LearningRateSchedule::kCosine || epochs > 1; }, "one epoch has the full rate")
      .needs(comes_to_a_step, kTooLate);
  list.add("step-epochs", &step_epochs, "with --schedule step: epochs between two steps")
      .range(1, 1e9)
      .needs(comes_to_a_step, kTooLate)
      .needs(steps, kNoSteps);
  list.add("step-factor", &step_factor, "with --schedule step: factor per step")
      .range(0, 1)
      .needs(comes_to_a_step, kTooLate)
      .needs(steps, kNoSteps);
  list.add("warmup", &warmup, "epochs over which the learning rate rises to its full value").range(0, 1e9);
  list.add("clip", &clip, "clip the gradient norm; 0: never").range(0, 1e30);
  list.add("patience", &patience, "stop after N validations without improvement; 0: never").range(0, 1e9).resumable();
  list.add_choice("keep", &keep, {{"best", KeptModel::kBest}, {"last", KeptModel::kLast}},
                  "model to test: best on validation, or last epoch")
      .resumable();
  list.add_choice("select-by", &select_by,
                  {{"auto", SelectBy::kAuto},
                   {"micro-f1", SelectBy::kMicroF1},
                   {"macro-f1", SelectBy::kMacroF1},
                   {"accuracy", SelectBy::kAccuracy},
                   {"loss", SelectBy::kLoss},
                   {"roc-auc", SelectBy::kRocAuc},
                   {"average-precision", SelectBy::kAveragePrecision},
                   {"r2", SelectBy::kR2},
                   {"mae", SelectBy::kMae},
                   {"rmse", SelectBy::kRmse}},
                  "validation score that chooses the model and ends training by --patience; auto: micro F1, or R² for "
                  "regression")
      .needs([this] { return keep == KeptModel::kBest || patience > 0; }, "--keep last without --patience");
  list.add_choice("loss", &loss, {{"mse", RegressionLoss::kSquared}, {"mae", RegressionLoss::kAbsolute}},
                  "regression: mean squared or mean absolute error");
  list.add("class-weights", &class_weights,
           "weight of each class in the loss: none, balanced (by its share of the training nodes), or a CSV file of "
           "class,weight")
      .value("none|balanced|FILE");
  list.add_choice("thresholds", &thresholds, {{"fixed", Thresholds::kFixed}, {"validation", Thresholds::kValidation}},
                  "multi-label: predict a class above the probability 0.5, or above thresholds chosen on the "
                  "validation nodes, if these help")
      .resumable();
  list.add_choice(
          "smooth", &smooth,
          {{"none", Smoothing::kNone},
           {"correct", Smoothing::kCorrect},
           {"smooth", Smoothing::kSmooth},
           {"both", Smoothing::kBoth},
           {"labels", Smoothing::kLabels}},
          "after training: spread the training nodes' errors (correct) and labels (smooth) along edges, Correct "
          "and Smooth; or the labels alone; strength chosen on validation. evaluate and predict do the same")
      .resumable();
  list.add("seed", &seed, "random seed of weights, dropout and batches").range(0, 9e18).common();
  list.add("standardise", &standardise, "scale each feature column to mean 0 and deviation 1 over the training nodes");
  list.add("normalise-rows", &normalise_rows, "divide each feature row by its sum");
  list.add("checkpoint-seconds", &checkpoint_seconds, "seconds between checkpoints; 0: one per epoch")
      .range(0, 1e9)
      .resumable();

  evaluation.list_options(list);
  list.add("eval-every", &eval_every, "epochs between validations; 0: every epoch, fewer on large graphs")
      .range(0, 1e9)
      .resumable();
}

void EvaluationOptions::list_options(OptionList& list) {
  list.begin_group("Evaluation");
  list.add_choice("evaluation", &kind, {{"exact", EvaluationKind::kExact}, {"blocks", EvaluationKind::kClusters}},
                  "exact: on the whole graph; blocks: cheaper, on METIS blocks without the edges between them")
      .resumable();
  list.add("evaluation-blocks", &clusters, "with --evaluation blocks: number of blocks")
      .range(1, 1e6)
      .resumable()
      .needs([this] { return kind == EvaluationKind::kClusters; }, "--evaluation exact");
}

void SmoothingOptions::list_options(OptionList& list) {
  list.add_choice("smooth", &kind,
                  {{"trained", Smoothing::kTrained},
                   {"none", Smoothing::kNone},
                   {"correct", Smoothing::kCorrect},
                   {"smooth", Smoothing::kSmooth},
                   {"both", Smoothing::kBoth},
                   {"labels", Smoothing::kLabels}},
                  "spread the training nodes' errors (correct) and labels (smooth) along edges, Correct and Smooth; or "
                  "the labels alone; strength chosen on validation. trained: as train --smooth was, if the graph has "
                  "such labels");
}

void PrecisionOptions::list_options(OptionList& list) {
  list.add_choice(
      "precision", &used,
      {{"trained", UsedPrecision::kTrained},
       {"float32", UsedPrecision::kFloat32},
       {"bfloat16", UsedPrecision::kBFloat16}},
      "of embeddings and products; bfloat16 takes half the memory for embeddings. trained: as train --precision was");
}

kernels::Precision PrecisionOptions::of(kernels::Precision trained) const {
  if (used == UsedPrecision::kTrained) return trained;
  return used == UsedPrecision::kFloat32 ? kernels::Precision::kFloat32 : kernels::Precision::kBFloat16;
}

uint32_t TrainOptions::clusters_per_batch(uint32_t num_clusters) const {
  return per_batch > 0 ? std::min(per_batch, num_clusters) : std::clamp(num_clusters / 30, 1u, 10u);
}

double TrainOptions::learning_rate_at(uint32_t epoch) const {
  const double full = epoch < warmup ? learning_rate * (epoch + 1) / (warmup + 1) : learning_rate;
  switch (schedule) {
    case LearningRateSchedule::kConstant:
      return full;
    case LearningRateSchedule::kCosine:
      return full * 0.5 * (1 + std::cos(std::numbers::pi * epoch / epochs));
    case LearningRateSchedule::kStep:
      return full * std::pow(step_factor, epoch / step_epochs);
  }
  return full;
}

uint32_t TrainOptions::evaluation_interval(uint64_t nodes, uint64_t training_rows) const {
  if (eval_every > 0) return eval_every;
  if (nodes <= kSmallGraph) return 1;
  const uint64_t interval = (5 * nodes + 3 * training_rows - 1) / std::max<uint64_t>(1, 3 * training_rows);
  return static_cast<uint32_t>(std::clamp<uint64_t>(interval, 1, UINT32_MAX));
}

}  // namespace cgcn
