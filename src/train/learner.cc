#include "train/learner.h"

#include "common/json.h"
#include "train/prepare.h"

namespace cgcn {

Learner::Learner(const TrainingPlan& plan, const TrainingInput& input)
    : model(plan.options.model, shape_of(plan.data), plan.options.train.seed),
      optimiser(make_optimiser(plan.options.optimiser, model)) {
  if (input.batches->has_remainders()) history.emplace(model, input.layout.data.num_nodes());
  if (plan.data.labels.regression()) model.set_regression(plan.options.train.loss, input.target);
  if (!input.class_weights.empty()) model.weigh_classes(input.class_weights);
  model.reserve(input.batches->limits());
  if (input.cluster_evaluator) model.reserve(input.cluster_evaluator->limits());
}

void Learner::share(dist::Group& group) {
  if (group.size() == 1) return;
  group.broadcast(std::as_writable_bytes(model.values()));
  for (const Optimiser::State& kept : optimiser->state()) group.broadcast(std::as_writable_bytes(kept.values));
  optimiser->set_steps(group.broadcast_value(optimiser->steps()));
  state = parse_json(group.broadcast(to_text(nlohmann::json(state)))).get<TrainingState>();
}

}  // namespace cgcn
