#include "train/trial.h"

#include <algorithm>
#include <cmath>

#include "common/interrupt.h"
#include "common/progress.h"
#include "train/loop.h"
#include "train/run_evaluation.h"
#include "train/selection.h"

namespace cgcn {

double score_settings(const Store& store, const RunOptions& options, const std::function<void()>& after_epoch) {
  const TrainingPlan plan = plan_training(store, options);
  StageTimes stages;
  const TrainingInput input = prepare_training(plan, stages);
  Learner learner(plan, input);
  dist::Group alone;
  const ModelInput read{input.features.x, input.features.aggregated, input.layout.data.labels, learner.kept_history()};
  TrainingLoop loop(options.train, *input.batches, read, learner, alone);
  while (learner.state.epoch < options.train.epochs) {
    loop.run_epoch([] { return StepSignal{}; }, [](StepSignal) { throw_if_interrupted(); });
    learner.state.end_epoch();
    after_epoch();
  }
  RunEvaluation evaluation(plan, input, learner.model, alone);
  const SelectBy by = selection_of(options.train.select_by, plan.data.labels);
  return selection_score(evaluation.test(nullptr).validation.scores(), by);
}

namespace {

// Nodes without a label are not scored.
double count_scored(const Dataset& data) {
  uint64_t nodes = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    nodes += data.role(v) == Role::kValidation && data.labels.known(v) ? 1 : 0;
  return static_cast<double>(nodes);
}

}  // namespace

double score_margin(double score, const Dataset& data, SelectBy by) {
  constexpr double kOfErrors = 0.01;  // of a loss or an error, or of R²
  if (by == SelectBy::kLoss || is_of_regression(by)) return kOfErrors * std::max(1e-6, std::abs(score));
  const double nodes = std::max(1.0, count_scored(data));
  const double share = (std::clamp(score, 0.0, 1.0) * nodes + 2) / (nodes + 4);  // never quite 0 or 1
  return std::sqrt(share * (1 - share) / nodes);
}

size_t Trials::best_of_short(const Dataset& data) const {
  const auto is_worse = [](const Trial& a, const Trial& b) { return a.score < b.score; };
  const auto best = std::max_element(list.begin(), list.end(), is_worse);
  const double first = list[0].score, margin = std::isfinite(first) ? score_margin(first, data, by) : 0;
  return best->score > first + margin ? static_cast<size_t>(best - list.begin()) : 0;
}

std::string Trials::text() const {
  const auto show = [&](double score) { return std::isfinite(score) ? show_score(score, by) : "failed"; };
  std::string scores, longer;
  for (const Trial& trial : list) {
    scores += fmt::format("{}{} {}", scores.empty() ? "" : ", ", trial.network, show(trial.score));
    if (trial.longer)
      longer += fmt::format("{}{} {}", longer.empty() ? "; after twice as many epochs " : ", ", trial.network,
                            show(*trial.longer));
  }
  return fmt::format("{} networks tried for part of their epochs ({}), validation {}: {}{}: {}{}", list.size(),
                     format_seconds(seconds), selection_name(by), scores, longer, list[taken].network,
                     taken > 0        ? " is taken"
                     : longer.empty() ? " stays: no other is better by more than chance"
                                      : " stays");
}

nlohmann::json Trials::describe() const {
  const auto shown = [&](double score) {  // null: failed
    return std::isfinite(score) ? nlohmann::json(shown_score(score, by)) : nlohmann::json();
  };
  nlohmann::json networks = nlohmann::json::array();
  for (const Trial& trial : list) {
    networks.push_back({{"network", trial.network}, {"score", shown(trial.score)}});
    if (trial.longer) networks.back()["score_of_longer_trial"] = shown(*trial.longer);
  }
  return {{"networks", networks},
          {"taken", list[taken].network},
          {"selected_by", selection_key(by)},
          {"seconds", seconds},
          {"text", text()}};
}

}  // namespace cgcn
