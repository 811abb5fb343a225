// clustergcn train: partition if needed, train, test the best model, and say what came of it.
#include <fmt/format.h>

#include <cmath>
#include <future>

#include "cli/command.h"
#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/progress.h"
#include "report/live_server.h"
#include "report/page.h"
#include "report/run_record.h"
#include "train/recipes.h"
#include "train/result.h"
#include "train/trainer.h"

namespace cgcn {
namespace {

struct TrainCommand {
  CommonOptions common;
  RunOptions options;
  OptionList common_list, list;
  std::string store, run, recipe, config;
  bool resume = false, live = false;
  uint16_t live_port = 0;
  CLI::App* command = nullptr;

  void run_command();

 private:
  std::vector<std::pair<std::string, std::string>> given_options();
  void settle_options();
  void settle_resumed_options();
  void show_settings();
  TrainingSummary train(Trainer& trainer, LiveServer* server);
  void report(const TrainingSummary& summary, const Dataset& data) const;

  bool has_report = false;
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

// The run's own configuration; only what does not change what was learnt so far may be given again.
void TrainCommand::settle_resumed_options() {
  if (run.empty()) throw Error("which run is to go on?", "--resume", "--run DIR");
  if (!recipe.empty() || !config.empty())
    throw Error("a resumed run keeps its own configuration", recipe.empty() ? "--config" : "--recipe", "leave it out");
  RunDirectory::require(run);
  const auto given = given_options();
  for (Option& option : list.all()) option.set(option.default_text(), "--" + option.name());
  read_toml(fs::path(run) / "config.toml", list);
  for (const auto& [name, value] : given) {
    const Option& option = *list.find(name);
    if (!options.may_change(option) && option.text() != value)
      throw Error(fmt::format("was {} and cannot change when a run is resumed{}", option.text(),
                              name == "epochs" ? ": the cosine schedule depends on it" : ""),
                  "--" + name, "leave it out, or train again with another --run");
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
  fmt::print("{} F1 {:.2f} %  (macro F1 {:.2f} %, {} of {} nodes {}right)\n", what, 100 * scores.micro_f1,
             100 * scores.macro_f1,
             format_count(static_cast<uint64_t>(std::llround(scores.accuracy * static_cast<double>(scores.nodes)))),
             format_count(scores.nodes), data.labels.multi_label() ? "wholly " : "");
  if (validation == 0)
    fmt::print("Model  of the last epoch, {}: there are no validation nodes to choose by\n", summary.kept_epoch);
  else
    fmt::print("Model  of epoch {} of {}{}: validation F1 {:.2f} %\n", summary.kept_epoch, summary.epochs,
               summary.stopped_early ? " (stopped early)" : "", 100 * summary.evaluation->validation.scores().micro_f1);
  fmt::print("Time   {} an epoch, {} in all\n", format_seconds(summary.train_seconds / std::max(1u, summary.epochs)),
             format_seconds(summary.total_seconds));
  fmt::print(
      "Memory {} at most, {} while training; graph {}, features {}, model {}, history {}, a step's workspace {}\n",
      format_bytes(summary.peak_memory), format_bytes(summary.training_peak), format_bytes(summary.graph_bytes),
      format_bytes(summary.features_bytes), format_bytes(summary.model_bytes), format_bytes(summary.history_bytes),
      format_bytes(summary.workspace_bytes));
  fmt::print("Work   {} embeddings an epoch, each used {:.1f} times; {} an epoch to prepare batches, beside it\n",
             format_count(summary.work.embeddings / std::max(1u, summary.epochs)), summary.work.utilisation(),
             format_seconds(summary.work.preparing_seconds / std::max(1u, summary.epochs)));
  fmt::print("Run    {}\n", summary.run.string());
  if (has_report) fmt::print("Report {}\n", report_file(summary.run).string());
}

// Writes the report however training ends. A report that cannot be written takes nothing from the run.
TrainingSummary TrainCommand::train(Trainer& trainer, LiveServer* server) {
  const fs::path folder = trainer.directory().path();
  const auto write_report = [&] {
    try {
      nlohmann::json data = read_runs({folder});
      nlohmann::json& state = data["runs"][0]["state"];
      if (state == "running") state = "stopped";  // it is this process that has the run, and it is about to end
      write_file_atomically(report_file(folder), make_page(data, /*live=*/false));
      has_report = true;
    } catch (const std::exception& problem) {
      log::warn("there is no report: {}", problem.what());
    }
  };
  try {
    if (server != nullptr) log::write_line("live at " + server->address());
    const TrainingSummary summary = trainer.run();
    write_report();
    if (server != nullptr) server->finish();
    return summary;
  } catch (const Interrupted&) {
    write_report();
    throw;
  } catch (...) {  // diverged, or a full disk
    if (!resume && trainer.state().step == 0)
      trainer.directory().discard();  // nothing was learnt: the next try finds the place free
    else
      write_report();
    throw;
  }
}

void TrainCommand::run_command() {
  apply_common_options(common);
  if (resume)
    settle_resumed_options();
  else
    settle_options();
  if (store.empty()) throw Error("which graph?", "STORE", "clustergcn train STORE");
  // The port first: one that is taken is said before any work is done. There is nothing to show until the run is there.
  std::promise<fs::path> begun;
  const std::shared_future<fs::path> folder = begun.get_future();
  const auto shown_run = [folder] {
    if (folder.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      throw Error("the run has not begun yet", "", "reload the page in a moment");
    return read_runs({folder.get()});
  };
  std::optional<LiveServer> server;
  if (live)
    server.emplace(LiveServer::Content{[&] { return make_page(shown_run(), /*live=*/true); },
                                       [&] { return to_text(shown_run()); }},
                   live_port);
  const Store opened(store);
  const Dataset data = opened.dataset();
  RunDirectory directory = resume ? RunDirectory::reopen(run) : RunDirectory::create(run, data.name);
  show_settings();
  const DataTraits traits{.sparse = !data.features.is_dense(),
                          .identity = data.features.kind() == FeatureMatrix::Kind::kIdentity,
                          .has_validation = data.split_sizes()[1] > 0};
  const std::vector<std::string> notes =
      note_unused_options(*command, list, [&](const Option& option) { return options.why_unused(option, traits); });
  Trainer trainer(opened, options, std::move(directory));
  const ClusterLayout& layout = trainer.layout();
  if (layout.data.num_nodes() < data.num_nodes())
    log::note("training sees {}", describe_training_share(layout.data.num_nodes(), data.num_nodes(),
                                                          layout.data.graph.num_edges(), data.graph.num_edges()));
  begun.set_value(trainer.directory().path());
  const TrainingSummary summary = train(trainer, server ? &*server : nullptr);
  if (common.json) {
    nlohmann::json result = describe_result(summary, data);
    result["notes"] = notes;
    fmt::print("{}\n", to_text(result, 2));
  } else {
    report(summary, data);
  }
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
  command.add_flag("--live", state->live, "show the report in a browser on this machine while training")->group("Run");
  command.add_option("--live-port", state->live_port, "the port of --live on 127.0.0.1; 0: any that is free [0]")
      ->type_name("PORT")
      ->needs("--live")
      ->group("Run");
  state->options.list_options(state->list);
  state->common.list_options(state->common_list);
  bind_options(command, state->list);
  bind_options(command, state->common_list);
  command.callback([state] { state->run_command(); });
}

}  // namespace cgcn
