// How a model is trained and scored: every value with its default, declared once.
#pragma once

#include <cstdint>
#include <string>

#include "batch/cluster_batches.h"
#include "common/options.h"
#include "kernels/bfloat16.h"
#include "nn/loss.h"

namespace cgcn {

enum class LearningRateSchedule { kConstant, kCosine, kStep };
enum class KeptModel { kBest, kLast };
// The validation score that chooses the model (selection.h).
enum class SelectBy { kAuto, kMicroF1, kMacroF1, kAccuracy, kLoss, kRocAuc, kAveragePrecision, kR2, kMae, kRmse };
// Multi-label: a class is predicted above the probability 0.5, or above what is best on validation.
enum class Thresholds { kFixed, kValidation };

enum class EvaluationKind { kExact, kClusters };

struct EvaluationOptions {
  EvaluationKind kind = EvaluationKind::kExact;
  uint32_t clusters = 20;  // kClusters: into how many the graph is cut

  void list_options(OptionList& list);
};

// What is made of a model's output with the labels of the training nodes (smoothing.h). kTrained: what the run's own
// option says.
enum class Smoothing { kNone, kCorrect, kSmooth, kBoth, kLabels, kTrained };

// Of a model that is used.
struct SmoothingOptions {
  Smoothing kind = Smoothing::kTrained;

  void list_options(OptionList& list);
};

// The precision of a model that is used. kTrained: that which it was trained in.
enum class UsedPrecision { kTrained, kFloat32, kBFloat16 };

struct PrecisionOptions {
  UsedPrecision used = UsedPrecision::kTrained;

  void list_options(OptionList& list);
  kernels::Precision of(kernels::Precision trained) const;
};

struct TrainOptions {
  uint32_t per_batch = 0;  // q; 0: see clusters_per_batch()
  ClusterDraw draw = ClusterDraw::kPermutation;
  uint32_t batches_per_step = 1;  // S: the gradient of a step is that of the mean loss over their labelled nodes
  uint32_t epochs = 200;
  double learning_rate = 0.01;
  LearningRateSchedule schedule = LearningRateSchedule::kConstant;
  uint32_t step_epochs = 50;  // kStep: every so many epochs …
  double step_factor = 0.5;   // … the rate is multiplied by this
  uint32_t warmup = 0;        // the rate rises over so many epochs
  double clip = 0;            // largest norm of the gradient; 0: any
  uint32_t patience = 0;      // evaluations without a better validation score before training stops; 0: never
  KeptModel keep = KeptModel::kBest;
  SelectBy select_by = SelectBy::kAuto;
  std::string class_weights = "none";  // or "balanced", or a file (class_weights.h)
  Thresholds thresholds = Thresholds::kFixed;
  Smoothing smooth = Smoothing::kNone;             // of the test, and wherever the model is used
  RegressionLoss loss = RegressionLoss::kSquared;  // of labels that are numbers
  uint64_t seed = 1;

  bool standardise = false;
  bool normalise_rows = false;
  EvaluationOptions evaluation;
  uint32_t eval_every = 0;           // epochs between validations; 0: see evaluation_interval()
  uint32_t checkpoint_seconds = 60;  // at the end of the first step after so long

  void list_options(OptionList& list);

  // per_batch, or if that is 0: a thirtieth of the clusters, from 1 to 10.
  uint32_t clusters_per_batch(uint32_t num_clusters) const;
  // The rate of an epoch, counted from 0.
  double learning_rate_at(uint32_t epoch) const;
  // eval_every, or if that is 0: every epoch of a small graph, else as often as makes validation about a fifth of
  // the work (a forward pass on every node, against three passes' worth on every training row). Does not depend on the
  // number of epochs, which may be raised; the last epoch is validated in any case.
  uint32_t evaluation_interval(uint64_t nodes, uint64_t training_rows) const;
};

}  // namespace cgcn
