#include "train/loop.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/timer.h"
#include "train/plan.h"

namespace cgcn {
namespace {

// Batches whose neighbourhoods fill the graph: said once, before the time is spent.
void note_expansion(const Batch& batch, uint32_t batches, uint32_t layers, uint64_t nodes) {
  constexpr uint64_t kManyTimes = 20;
  const uint64_t times = batch.num_embeddings(layers) * batches / std::max<uint64_t>(1, nodes * layers);
  if (times >= kManyTimes)
    log::note(
        "each batch reaches {} of {} nodes: an epoch computes {} times as much as --method full-batch; "
        "a --fanout or a larger --batch-nodes makes it less",
        format_count(batch.inputs.size()), format_count(nodes), format_count(times));
}

std::string describe_not_finite(double loss, double gradient_norm) {
  const bool is_loss = !std::isfinite(loss);
  return fmt::format("the {} became {}", is_loss ? "loss" : "gradient",
                     std::isnan(is_loss ? loss : gradient_norm) ? "NaN" : "infinite");
}

}  // namespace

NotFinite::NotFinite(double loss, double gradient_norm, std::string first)
    : std::runtime_error(describe_not_finite(loss, gradient_norm)), parameter(std::move(first)) {}

TrainingLoop::TrainingLoop(const TrainOptions& options, const BatchSource& batches, const ModelInput& input,
                           Learner& learner, dist::Group& group)
    : options_(options),
      batches_(batches),
      input_(input),
      learner_(learner),
      gradients_(group, learner.model),
      queue_(batches, learner.state.epoch, options.epochs, learner.state.batch, kBatchesAhead, [this](uint32_t index) {
        return gradients_.own_batch_from(index, batches_.batches_per_epoch(), options_.batches_per_step);
      }) {}

uint32_t TrainingLoop::steps_per_epoch() const {
  return (batches_.batches_per_epoch() - 1) / options_.batches_per_step + 1;
}

void TrainingLoop::run_epoch(const std::function<StepSignal()>& ask,
                             const std::function<void(StepSignal)>& after_step) {
  TrainingState& state = learner_.state;
  while (state.batch < batches_.batches_per_epoch()) {
    const Timer timer;
    const StepSignal signal = take_step(ask);
    state.epoch_seconds += timer.seconds();
    after_step(signal);
  }
}

SlotReport TrainingLoop::compute_slot(uint32_t slot, const GradientPass& pass) {
  Model& model = learner_.model;
  TrainingState& state = learner_.state;
  const Timer timer;
  const Batch& batch = queue_.next();
  state.epoch_waited += timer.seconds();
  CGCN_CHECK(batch.epoch == state.epoch && batch.index == state.batch + slot);
  const uint32_t layers = model.num_layers();
  if (state.step == 0 && slot == 0)
    note_expansion(batch, batches_.batches_per_epoch(), layers, std::max(input_.x.rows(), input_.aggregated.rows()));
  const BatchArrays* own = batch.arrays;
  const auto compute = [&](const ModelInput& input) {
    return model.compute_gradients(batch, input, options_.seed, pass);
  };
  return {own == nullptr ? compute(input_) : compute({*own->x, *own->aggregated, *own->labels, nullptr}),
          {batch.num_embeddings(layers), batch.num_links(layers), batch.num_sources(layers), batch.seconds}};
}

StepSignal TrainingLoop::take_step(const std::function<StepSignal()>& ask) {
  Model& model = learner_.model;
  TrainingState& state = learner_.state;
  const uint32_t slots = std::min(options_.batches_per_step, batches_.batches_per_epoch() - state.batch);
  const SlotTotal total = gradients_.sum(
      slots, [&](uint32_t slot, const GradientPass& pass) { return compute_slot(slot, pass); }, ask);
  const double norm = gradient_norm(model) * total.scale;
  if (!std::isfinite(total.loss) || !std::isfinite(norm)) throw NotFinite(total.loss, norm, first_not_finite(model));
  const double shrink = options_.clip > 0 && norm > options_.clip ? options_.clip / norm : 1;
  learner_.optimiser->step(model, static_cast<float>(options_.learning_rate_at(state.epoch)),
                           static_cast<float>(shrink * total.scale));
  model.move_statistics(slots);
  for (const SlotReport& slot : total.slots) {
    state.loss_sum += slot.result.loss * slot.result.labelled;
    state.labelled += slot.result.labelled;
    state.epoch_work.add(slot.work);
  }
  state.batch += slots;
  ++state.step;
  return total.signal;
}

}  // namespace cgcn
