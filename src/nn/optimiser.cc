#include "nn/optimiser.h"

#include <atomic>
#include <cmath>

#include "common/error.h"
#include "kernels/adam_step.h"
#include "nn/adam.h"
#include "nn/parameter_runs.h"

namespace cgcn {

void OptimiserOptions::list_options(OptionList& list) {
  list.begin_group("Optimiser");
  list.add_choice("optimiser", &kind, {{"adam", OptimiserKind::kAdam}, {"adamw", OptimiserKind::kAdamW}},
                  "Adam, or AdamW (decoupled weight decay)");
  list.add("beta1", &beta1, "Adam's β1").range(0, 0.999999);
  list.add("beta2", &beta2, "Adam's β2").range(0, 0.9999999);
  list.add("epsilon", &epsilon, "Adam's ε").range(0, 1);
  list.add("weight-decay", &weight_decay, "adam: L2 penalty; adamw: decoupled weight decay, times lr").range(0, 1);
  list.add_choice("decay-scope", &decay_scope, {{"all", DecayScope::kAll}, {"first-layer", DecayScope::kFirstLayer}},
                  "parameters with weight decay");
  list.add("dense-adam", &dense,
           "sparse features: update every row of the first weight, not only those the batch used");
}

std::unique_ptr<Optimiser> make_optimiser(const OptimiserOptions& options, const Model& model) {
  switch (options.kind) {
    case OptimiserKind::kAdam:
      return std::make_unique<Adam>(options, model);
    case OptimiserKind::kAdamW:
      return std::make_unique<AdamW>(options, model);
  }
  CGCN_CHECK(false);
  return nullptr;
}

uint64_t planned_optimiser_bytes(const OptimiserOptions& options, const Model& model) {
  switch (options.kind) {
    case OptimiserKind::kAdam:
    case OptimiserKind::kAdamW:
      return Adam::planned_bytes(model);
  }
  CGCN_CHECK(false);
  return 0;
}

uint64_t Optimiser::bytes() {
  uint64_t total = 0;
  for (const State& kept : state()) total += kept.values.size_bytes();
  return total;
}

double gradient_norm(const Model& model) {
  double total = 0;
  std::vector<double> sums;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    if (!model.parameters()[i].is_learnt()) continue;
    const ParameterRuns runs(model.parameters()[i], model.touched_rows(i));
    sums.assign(runs.blocks(), 0);
    runs.for_each([&](size_t block, uint64_t offset, size_t size) {
      sums[block] += kernels::sum_of_squares(size, &model.gradients()[offset]);
    });
    for (const double sum : sums) total += sum;
  }
  return std::sqrt(total);
}

std::string first_not_finite(const Model& model) {
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    std::atomic<bool> finite = true;
    const ParameterRuns runs(model.parameters()[i], model.touched_rows(i));
    runs.for_each([&](size_t, uint64_t offset, size_t size) {
      if (!kernels::all_finite(size, &model.gradients()[offset])) finite = false;
    });
    if (!finite) return model.parameters()[i].name;
  }
  return {};
}

}  // namespace cgcn
