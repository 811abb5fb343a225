// The third verb of training (Algorithm 1): batches → gradient → step of the optimiser, until the epoch is at its end.
//
// What happens is a function of the options, the batches and the state alone. Everything else (checkpoints, metrics,
// the progress line) listens to it.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "batch/batch_queue.h"
#include "train/learner.h"
#include "train/slot_gradients.h"
#include "train/train_options.h"

namespace cgcn {

// Thrown if a loss or a gradient is not finite, before the weights have taken it.
struct NotFinite : std::runtime_error {
  NotFinite(double loss, double gradient_norm, std::string first);
  std::string parameter;  // the first whose gradient is not finite; empty: the gradients are
};

class TrainingLoop {
 public:
  // Everything outlives the loop. From where the learner stands on.
  TrainingLoop(const TrainOptions& options, const BatchSource& batches, const ModelInput& input, Learner& learner,
               dist::Group& group);

  // The steps that are left of the epoch; after each, after_step(). ask: what rank 0 wants to be done then.
  void run_epoch(const std::function<StepSignal()>& ask, const std::function<void(StepSignal)>& after_step);

  uint32_t steps_per_epoch() const;
  const dist::Traffic& traffic() const { return gradients_.traffic(); }  // of the steps so far

 private:
  StepSignal take_step(const std::function<StepSignal()>& ask);
  SlotReport compute_slot(uint32_t slot, const GradientPass& pass);

  const TrainOptions& options_;
  const BatchSource& batches_;
  ModelInput input_;
  Learner& learner_;
  SlotGradients gradients_;
  BatchQueue queue_;
};

}  // namespace cgcn
