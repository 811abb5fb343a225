// clustergcn train: partition if needed, train, test the best model, and say what came of it.
#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "common/error.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/progress.h"
#include "train/recipes.h"
#include "train/trainer.h"

namespace cgcn {
namespace {

struct TrainCommand {
  CommonOptions common;
  RunOptions options;
  OptionList common_list, list;
  std::string store, run, recipe, config;
  bool resume = false;
  CLI::App* command = nullptr;

  void run_command();

 private:
  std::vector<std::pair<std::string, std::string>> given_options();
  void settle_options();
  void settle_resumed_options();
  void show_settings();
  void report(const TrainingSummary& summary, const Dataset& data) const;
  void report_json(const TrainingSummary& summary) const;
};

std::string whole_path(const std::string& path) { return path.empty() ? path : fs::absolute(path).string(); }

// What the command line named, in the form that set() takes. Paths are made whole, since a run may go on from
// elsewhere.
std::vector<std::pair<std::string, std::string>> TrainCommand::given_options() {
  std::vector<std::pair<std::string, std::string>> given;
  for (const Option& option : list.all())
    if (command->count("--" + option.name()) > 0)
      given.emplace_back(option.name(), option.name() == "from" ? whole_path(option.text()) : option.text());
  return given;
}

// Defaults, recipe, file, command line: later ones win.
void TrainCommand::settle_options() {
  const auto given = given_options();
  for (Option& option : list.all()) option.set(option.default_text(), "--" + option.name());
  if (!recipe.empty()) apply_recipe(find_recipe(recipe), list);
  if (!config.empty()) read_toml(config, list);
  options.partition.from = whole_path(options.partition.from);
  for (const auto& [name, value] : given) list.set(name, value, "");
}

// The run's own configuration; only what does not change what was learnt so far may be given anew.
void TrainCommand::settle_resumed_options() {
  if (run.empty()) throw Error("which run is to go on?", "--resume", "--run DIR");
  if (!recipe.empty() || !config.empty())
    throw Error("a resumed run keeps its own configuration", recipe.empty() ? "--config" : "--recipe", "leave it out");
  const auto given = given_options();
  for (Option& option : list.all()) option.set(option.default_text(), "--" + option.name());
  read_toml(fs::path(run) / "config.toml", list);
  for (const auto& [name, value] : given) {
    const Option& option = *list.find(name);
    const bool free = option.group() == "Evaluation" || name == "epochs" || name == "patience" || name == "keep" ||
                      name == "checkpoint-seconds";
    if (!free && option.text() != value)
      throw Error(fmt::format("was {} and cannot change while a run goes on", option.text()), "--" + name,
                  "leave it out, or train anew with another --run");
    list.set(name, value, "");
  }
  if (!store.empty()) return;
  store = recorded_store(run);  // also of a run that was stopped before its first checkpoint
  std::error_code problem;
  if (store.empty())
    throw Error("does not say which graph it was for", run, "clustergcn train STORE --run DIR --resume");
  if (!fs::exists(store, problem))
    throw Error(
        "the graph store of this run is not there any more", store,
        fmt::format("clustergcn train STORE --run {} --resume, with the place where it is now", shell_word(run)));
}

// What differs from the defaults; config.toml has everything.
void TrainCommand::show_settings() {
  std::string text;
  for (const Option& option : list.all())
    if (!option.is_default()) text += " " + option.command_line();
  log::note("settings:{}", text.empty() ? " the defaults" : text);
}

void TrainCommand::report(const TrainingSummary& summary, const Dataset& data) const {
  const auto [train, validation, test] = data.split_sizes();
  const Role tested = test > 0 ? Role::kTest : validation > 0 ? Role::kValidation : Role::kTrain;
  const Scores scores = summary.evaluation->of(tested).scores();
  const char* what = test > 0         ? "Test"
                     : validation > 0 ? "Validation (there are no test nodes)"
                                      : "Training (there are no other nodes)";
  fmt::print("{} F1 {:.2f} %  (macro F1 {:.2f} %, {} of {} nodes wholly right)\n", what, 100 * scores.micro_f1,
             100 * scores.macro_f1,
             format_count(static_cast<uint64_t>(std::llround(scores.accuracy * static_cast<double>(scores.nodes)))),
             format_count(scores.nodes));
  if (validation == 0)
    fmt::print("Model  of the last epoch, {}: there are no validation nodes to choose by\n", summary.kept_epoch);
  else
    fmt::print("Model  of epoch {} of {}{}: validation F1 {:.2f} %\n", summary.kept_epoch, summary.epochs,
               summary.stopped_early ? " (stopped early)" : "", 100 * summary.evaluation->validation.scores().micro_f1);
  fmt::print("Time   {} an epoch, {} in all\n", format_seconds(summary.train_seconds / std::max(1u, summary.epochs)),
             format_seconds(summary.total_seconds));
  fmt::print("Memory {} at most, of which model {} and a step's workspace {}\n", format_bytes(summary.peak_memory),
             format_bytes(summary.model_bytes), format_bytes(summary.workspace_bytes));
  fmt::print("Run    {}\n", summary.run.string());
}

void TrainCommand::report_json(const TrainingSummary& summary) const {
  const Evaluation& evaluation = *summary.evaluation;
  const nlohmann::json result = {{"run", summary.run.string()},
                                 {"train", evaluation.train.scores()},
                                 {"validation", evaluation.validation.scores()},
                                 {"test", evaluation.test.scores()},
                                 {"epochs", summary.epochs},
                                 {"kept_epoch", summary.kept_epoch},
                                 {"stopped_early", summary.stopped_early},
                                 {"parts", summary.clusters},
                                 {"per_batch", summary.per_batch},
                                 {"weights", summary.weights},
                                 {"seconds_per_epoch", summary.train_seconds / std::max(1u, summary.epochs)},
                                 {"train_seconds", summary.train_seconds},
                                 {"total_seconds", summary.total_seconds},
                                 {"evaluation_seconds", evaluation.seconds},
                                 {"peak_memory_bytes", summary.peak_memory},
                                 {"model_bytes", summary.model_bytes},
                                 {"workspace_bytes", summary.workspace_bytes}};
  fmt::print("{}\n", result.dump(2));
}

void TrainCommand::run_command() {
  apply_common_options(common);
  if (resume)
    settle_resumed_options();
  else
    settle_options();
  if (store.empty()) throw Error("which graph?", "STORE", "clustergcn train STORE");
  const Store opened(store);
  const Dataset data = opened.dataset();
  RunDirectory directory = resume ? RunDirectory::reopen(run) : RunDirectory::create(run, data.name);
  show_settings();
  Trainer trainer(opened, options, std::move(directory));
  const TrainingSummary summary = trainer.run();
  if (common.json)
    report_json(summary);
  else
    report(summary, data);
}

std::string recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : all_recipes()) names.push_back(recipe.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void add_train_command(CLI::App& program) {
  auto state = std::make_shared<TrainCommand>();
  state->command = program.add_subcommand("train", "Train a model on a graph store and test it");
  CLI::App& command = *state->command;
  command.add_option("store", state->store, "the graph store; may be left out with --resume");
  command.add_option("--run", state->run, "where the run goes; runs/NAME-N where not given")
      ->type_name("DIR")
      ->group("Run");
  command.add_flag("--resume", state->resume, "go on with the run in --run")->group("Run");
  command.add_option("--recipe", state->recipe, "settings by name: " + recipe_names())->type_name("NAME")->group("Run");
  command.add_option("--config", state->config, "settings from a TOML file, such as a run's config.toml")
      ->type_name("FILE")
      ->group("Run");
  state->options.list_options(state->list);
  state->common.list_options(state->common_list);
  bind_options(command, state->list);
  bind_options(command, state->common_list);
  command.callback([state] { state->run_command(); });
}

}  // namespace cgcn
