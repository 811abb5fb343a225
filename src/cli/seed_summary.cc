#include "cli/seed_summary.h"

#include <fmt/format.h>

#include "common/progress.h"
#include "train/seed_scores.h"
#include "train/selection.h"

namespace cgcn {
namespace {

Role tested_role(const Dataset& data) {
  const auto [train, validation, test] = data.split_sizes();
  return test > 0 ? Role::kTest : validation > 0 ? Role::kValidation : Role::kTrain;
}

const char* name_of(Role role) {
  return role == Role::kTest ? "test" : role == Role::kValidation ? "validation" : "training";
}

}  // namespace

nlohmann::json describe_seeds(const std::vector<SeedResult>& results) {
  nlohmann::json runs = nlohmann::json::array(), spreads;
  for (const SeedResult& result : results) {
    const Evaluation& evaluation = *result.summary.evaluation;
    runs.push_back({{"seed", result.seed},
                    {"run", result.summary.run.string()},
                    {"train", evaluation.train.scores()},
                    {"validation", evaluation.validation.scores()},
                    {"test", evaluation.test.scores()},
                    {"kept_epoch", result.summary.kept_epoch},
                    {"total_seconds", result.summary.total_seconds}});
  }
  for (const char* role : {"train", "validation", "test"}) {
    if (runs[0][role]["nodes"] == 0) continue;
    for (const auto& [score, unused] : runs[0][role].items()) {
      std::vector<double> values;
      for (const nlohmann::json& run : runs)
        if (run[role].contains(score)) values.push_back(run[role][score].get<double>());
      if (score == "nodes" || values.size() < runs.size()) continue;
      const Spread spread = spread_of(values);
      spreads[role][score] = {
          {"mean", spread.mean}, {"deviation", spread.deviation}, {"confidence_95", {spread.low, spread.high}}};
    }
  }
  return {{"seeds", runs}, {"scores", spreads}};
}

void print_seeds(const std::vector<SeedResult>& results, const Dataset& data, const fs::path& folder) {
  const Role role = tested_role(data);
  const SelectBy by = summary_score(data.labels);
  std::vector<double> scores;
  double seconds = 0;
  for (const SeedResult& result : results) {
    scores.push_back(selection_score(result.summary.evaluation->of(role).scores(), by));
    seconds += result.summary.total_seconds;
    fmt::print("seed {:<6} {} {}  epoch {:<6} {}\n", result.seed, name_of(role), show_selection(scores.back(), by),
               result.summary.kept_epoch, result.summary.run.string());
  }
  const Spread spread = spread_of(scores);
  fmt::print("Mean   {} {} of {} seeds; 95 % confidence interval of the mean {}\n", name_of(role),
             show_spread(spread.mean, spread.deviation, by), results.size(),
             show_interval(spread.low, spread.high, by));
  fmt::print("Time   {} in total\n", format_seconds(seconds));
  fmt::print("Runs   {}\n", folder.string());
}

}  // namespace cgcn
