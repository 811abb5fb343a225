// clustergcn evaluate: how well a trained model does, on its own graph or another.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "common/error.h"
#include "common/json.h"
#include "common/progress.h"
#include "process/process_group.h"
#include "train/predictor.h"
#include "train/ranking.h"
#include "train/result.h"
#include "train/seed_runs.h"

namespace cgcn {
namespace {

constexpr uint32_t kShownClasses = 20;    // more: the table shows the most frequent ones
constexpr uint32_t kShownConfusion = 16;  // more: the matrix is left to --json

struct EvaluateCommand {
  CLI::App* command = nullptr;
  CommonOptions common;
  EvaluationOptions options;
  SmoothingOptions smoothing;
  PrecisionOptions precision;
  MemoryOptions memory;
  dist::GroupOptions group_options;
  OptionList list;
  std::string run, store;

  void run_command();

 private:
  void run_in(dist::Group& group);
};

struct RoleScores {
  const char* name;
  const Tally& tally;
};

void print_number_scores(const std::vector<RoleScores>& roles) {
  fmt::print("{:<12}{:>12}{:>10}{:>12}{:>12}{:>10}\n", "", "nodes", "R²", "MAE", "RMSE", "loss");
  for (const auto& [name, tally] : roles) {
    const Scores s = tally.scores();
    if (s.nodes == 0) continue;
    fmt::print("{:<12}{:>12}{:>10.4f}{:>12}{:>12}{:>10.4f}\n", name, format_count(s.nodes), s.regression->r2,
               show_number(s.regression->mae), show_number(s.regression->rmse), s.loss);
  }
}

void print_scores(const std::vector<RoleScores>& roles, const Predictor& predictor) {
  const bool ranked = std::any_of(roles.begin(), roles.end(),
                                  [](const RoleScores& role) { return role.tally.scores().roc_auc.has_value(); });
  fmt::print("{:<12}{:>12}{:>10}{:>10}{:>10}{:>10}{}{:>14}\n", "", "nodes", "micro F1", "macro F1", "accuracy", "loss",
             ranked ? "   ROC-AUC  avg. prec." : "", "calib. error");
  for (const auto& [name, tally] : roles) {
    const Scores s = tally.scores();
    if (s.nodes == 0) continue;
    fmt::print("{:<12}{:>12}{:>8.2f} %{:>8.2f} %{:>8.2f} %{:>10.4f}", name, format_count(s.nodes), 100 * s.micro_f1,
               100 * s.macro_f1, 100 * s.accuracy, s.loss);
    if (s.roc_auc) fmt::print("{:>8.2f} %{:>10.2f} %", 100 * *s.roc_auc, 100 * *s.average_precision);
    if (ranked && !s.roc_auc) fmt::print("{:>10}{:>12}", "–", "–");
    fmt::print("{:>12.2f} %", 100 * s.calibration_error);
    if (s.calibrated_error) fmt::print(" ({:.2f} % calibrated)", 100 * *s.calibrated_error);
    fmt::print("\n");
  }
  if (ranked && !predictor.saved().shape.multi_label)
    fmt::print("ROC-AUC and average precision are those of class {}\n", predictor.class_name(kPositiveClass));
}

void print_classes(const Tally& tally, const Predictor& predictor) {
  std::vector<uint32_t> order(tally.num_classes());
  for (uint32_t c = 0; c < order.size(); ++c) order[c] = c;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return tally.classes()[a].support() > tally.classes()[b].support(); });
  const size_t shown = std::min<size_t>(order.size(), kShownClasses);
  size_t width = 5;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, predictor.class_name(order[i]).size());
  fmt::print("\n{:<{}}{:>12}{:>11}{:>10}{:>10}\n", "class", width, "nodes", "precision", "recall", "F1");
  for (size_t i = 0; i < shown; ++i) {
    const ClassCounts& counts = tally.classes()[order[i]];
    fmt::print("{:<{}}{:>12}{:>9.2f} %{:>8.2f} %{:>8.2f} %\n", predictor.class_name(order[i]), width,
               format_count(counts.support()), 100 * counts.precision(), 100 * counts.recall(), 100 * counts.f1());
  }
  if (shown < order.size())
    fmt::print("… and {} classes with fewer nodes (--json lists up to 10,000)\n", order.size() - shown);
}

void print_confusion(const Tally& tally, const Predictor& predictor) {
  const uint32_t classes = tally.num_classes();
  if (tally.confusion().empty() || classes > kShownConfusion) return;
  size_t width = 8, label_width = 15;
  for (uint32_t c = 0; c < classes; ++c) {
    width = std::max(width, predictor.class_name(c).size() + 1);
    label_width = std::max(label_width, predictor.class_name(c).size());
  }
  fmt::print("\n{:<{}}", "label\\prediction", label_width + 1);
  for (uint32_t c = 0; c < classes; ++c) fmt::print("{:>{}}", predictor.class_name(c), width);
  fmt::print("\n");
  for (uint32_t row = 0; row < classes; ++row) {
    fmt::print("{:<{}}", predictor.class_name(row), label_width + 1);
    for (uint32_t c = 0; c < classes; ++c)
      fmt::print("{:>{}}", format_count(tally.confusion()[size_t{row} * classes + c]), width);
    fmt::print("\n");
  }
}

void EvaluateCommand::run_command() {
  apply_common_options(common);
  run_in_group(group_options, common.threads, [&](dist::Group& group) { run_in(group); });
}

void EvaluateCommand::run_in(dist::Group& group) {
  const std::vector<std::string> notes = note_unused_options(*command, list);
  std::optional<Predictor> opened;
  group.together([&] {
    run = best_of_seeds(run).string();
    opened.emplace(run, store, memory, group, precision);
  });
  Predictor& predictor = *opened;
  predictor.require_same_on_all_ranks();
  const Evaluation evaluation = predictor.evaluate(options, smoothing.kind);
  if (!group.is_first()) return;
  const std::vector<RoleScores> roles = {
      {"test", evaluation.test}, {"validation", evaluation.validation}, {"train", evaluation.train}};
  if (common.json) {
    nlohmann::json result = {{"run", run}, {"store", predictor.data().path.string()}, {"seconds", evaluation.seconds}};
    for (const auto& [name, tally] : roles)
      result[name] = describe_tally(tally, [&](uint32_t c) { return predictor.class_name(c); });
    if (evaluation.smoothing) result["smoothing"] = describe_smoothing(*evaluation.smoothing);
    if (evaluation.rule.temperature) result["temperature"] = *evaluation.rule.temperature;
    result["notes"] = notes;
    fmt::print("{}\n", to_text(result, 2));
    return;
  }
  if (evaluation.smoothing) {
    fmt::print("Smoothing  {}\n", evaluation.smoothing->text());
    fmt::print("{}\n", evaluation.smoothing->chosen()
                           ? "           train has the model's own scores: smoothing knows the labels there\n"
                           : "");
  }
  if (predictor.saved().shape.regression) return print_number_scores(roles);
  print_scores(roles, predictor);
  for (const auto& [name, tally] : roles) {
    if (tally.scores().nodes == 0) continue;
    print_classes(tally, predictor);  // of the first role that has nodes: test, else validation, else train
    print_confusion(tally, predictor);
    break;
  }
}

}  // namespace

void add_evaluate_command(CLI::App& program) {
  auto state = std::make_shared<EvaluateCommand>();
  CLI::App* command = program.add_subcommand("evaluate", "Evaluate a trained model on its graph or another one");
  state->command = command;
  command->add_option("run", state->run, "run folder, a checkpoint in it, or a folder of train --seeds: its best run")
      ->required();
  command->add_option("store", state->store, "graph store; default: the one it was trained on");
  state->options.list_options(state->list);
  state->smoothing.list_options(state->list);
  state->precision.list_options(state->list);
  state->memory.list_options(state->list);
  state->group_options.list_options(state->list);
  state->common.list_options(state->list);
  bind_options(*command, state->list);
  command->callback([state] { state->run_command(); });
}

}  // namespace cgcn
