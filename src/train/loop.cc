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
                           Model& model, Optimiser& optimiser, TrainingState& state, dist::Group& group)
    : options_(options),
      batches_(batches),
      input_(input),
      model_(model),
      optimiser_(optimiser),
      state_(state),
      group_(group),
      gradients_(group, model),
      queue_(batches, state.epoch, options.epochs, state.batch, kBatchesAhead, [this](uint32_t index) {
        return own_batch_from(index, batches_.batches_per_epoch(), options_.batches_per_step, group_.rank(),
                              group_.size());
      }) {}

uint32_t TrainingLoop::steps_per_epoch() const {
  return (batches_.batches_per_epoch() - 1) / options_.batches_per_step + 1;
}

void TrainingLoop::run_epoch(const std::function<StepSignal()>& ask,
                             const std::function<void(StepSignal)>& after_step) {
  while (state_.batch < batches_.batches_per_epoch()) {
    const Timer timer;
    const StepSignal signal = take_step(ask);
    state_.epoch_seconds += timer.seconds();
    after_step(signal);
  }
}

SlotReport TrainingLoop::compute_slot(uint32_t slot, const GradientPass& pass) {
  const Timer timer;
  const Batch& batch = queue_.next();
  state_.epoch_waited += timer.seconds();
  CGCN_CHECK(batch.epoch == state_.epoch && batch.index == state_.batch + slot);
  const uint32_t layers = model_.num_layers();
  if (state_.step == 0 && slot == 0)
    note_expansion(batch, batches_.batches_per_epoch(), layers, std::max(input_.x.rows(), input_.aggregated.rows()));
  const BatchArrays* own = batch.arrays;
  const auto compute = [&](const ModelInput& input) {
    return model_.compute_gradients(batch, input, options_.seed, pass);
  };
  return {own == nullptr ? compute(input_) : compute({*own->x, *own->aggregated, *own->labels, nullptr}),
          {batch.num_embeddings(layers), batch.num_links(layers), batch.num_sources(layers), batch.seconds}};
}

StepSignal TrainingLoop::take_step(const std::function<StepSignal()>& ask) {
  const dist::Traffic before = group_.traffic();
  const uint32_t slots = std::min(options_.batches_per_step, batches_.batches_per_epoch() - state_.batch);
  const SlotTotal total = gradients_.sum(
      slots, [&](uint32_t slot, const GradientPass& pass) { return compute_slot(slot, pass); }, ask);
  traffic_.add(group_.traffic(), before);
  const double norm = gradient_norm(model_) * total.scale;
  if (!std::isfinite(total.loss) || !std::isfinite(norm)) throw NotFinite(total.loss, norm, first_not_finite(model_));
  const double shrink = options_.clip > 0 && norm > options_.clip ? options_.clip / norm : 1;
  optimiser_.step(model_, static_cast<float>(options_.learning_rate_at(state_.epoch)),
                  static_cast<float>(shrink * total.scale));
  model_.move_statistics(slots);
  for (const SlotReport& slot : total.slots) {
    state_.loss_sum += slot.result.loss * slot.result.labelled;
    state_.labelled += slot.result.labelled;
    state_.epoch_work.add(slot.work);
  }
  state_.batch += slots;
  ++state_.step;
  return total.signal;
}

}  // namespace cgcn
