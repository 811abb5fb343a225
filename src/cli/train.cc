// clustergcn train: partition if needed, train, test the best model, print the results.
#include <fmt/format.h>

#include <chrono>
#include <future>
#include <optional>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/training_summary.h"
#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "engine/settings.h"
#include "report/live_server.h"
#include "report/page.h"
#include "report/run_record.h"
#include "train/recipes.h"
#include "train/result.h"
#include "train/training.h"

namespace cgcn {
namespace {

struct TrainCommand {
  CommonOptions common;
  dist::GroupOptions group_options;
  RunSettings settings;
  OptionList common_list;
  std::string store, run;
  bool resume = false, live = false;
  uint16_t live_port = 0;
  CLI::App* command = nullptr;

  void run_command();

 private:
  void run_in(dist::Group& group);
  void take_given(uint32_t processes);
  void settle(const Dataset& data);
  void share_settings(dist::Group& group);
  void show_settings() const;
};

// What the command line says, and with it the store.
void TrainCommand::take_given(uint32_t processes) {
  settings.processes = processes;
  for (const Option& option : settings.list.all())
    if (command->count("--" + option.name()) > 0) settings.given.emplace_back(option.name(), option.text());
  if (resume) {
    settings.settle_resumed(run);
    if (store.empty()) store = store_of_run(run);
  } else {
    settings.check();
  }
  if (store.empty()) throw Error("is missing", "STORE", "clustergcn train STORE");
}

void TrainCommand::settle(const Dataset& data) {
  if (resume) return;
  settings.settle(data);
  for (const Choice& choice : settings.choices)
    log::note("auto: {}: {}", settings.list.find(choice.option)->command_line(), choice.reason);
}

// The first rank read the files: the others have its settings.
void TrainCommand::share_settings(dist::Group& group) {
  if (group.size() == 1) return;
  std::string text;
  for (const Option& option : settings.list.all()) text += option.text() + '\0';
  const std::string shared = group.broadcast(text);
  size_t at = 0;
  const auto next = [&] {
    const std::string value = shared.c_str() + at;
    at += value.size() + 1;
    return value;
  };
  for (Option& option : settings.list.all()) option.set(next(), "--" + option.name());
}

// What differs from the fixed defaults, to be pasted; config.toml has everything.
void TrainCommand::show_settings() const {
  std::string text;
  for (const Option& option : settings.list.all())
    if (!option.is_default()) text += " " + option.command_line();
  log::note("settings: --recipe none{}", text);
}

// The page of --live, from before there is a run to show.
class LiveReport {
 public:
  explicit LiveReport(uint16_t port) : folder_(begun_.get_future()), server_(content(folder_), port) {}
  void begin(const fs::path& run) {
    begun_.set_value(run);
    log::write_line("live report: " + server_.address());
  }
  void finish() { server_.finish(); }

 private:
  static LiveServer::Content content(const std::shared_future<fs::path>& folder) {
    const auto shown_run = [folder] {
      if (folder.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
        throw Error("the run has not started yet", "", "reload the page in a moment");
      return read_runs({folder.get()});
    };
    return {[shown_run] { return make_page(shown_run(), /*live=*/true); },
            [shown_run] { return to_text(shown_run()); }};
  }

  std::promise<fs::path> begun_;
  std::shared_future<fs::path> folder_;
  LiveServer server_;
};

// Whether there is one: a report that cannot be written takes nothing from the run.
bool write_report(const fs::path& folder) {
  if (!RunDirectory::is_run(folder)) return false;
  try {
    nlohmann::json data = read_runs({folder});
    nlohmann::json& state = data["runs"][0]["state"];
    if (state == "running") state = "stopped";  // it is this process that has the run, and it is about to end
    write_file_atomically(RunFiles(folder).report(), make_page(data, /*live=*/false));
    return true;
  } catch (const std::exception& problem) {
    log::warn("the report was not written: {}", problem.what());
    return false;
  }
}

void TrainCommand::run_command() {
  apply_common_options(common);
  run_in_group(group_options, common, [&](dist::Group& group) { run_in(group); });
}

void TrainCommand::run_in(dist::Group& group) {
  std::optional<LiveReport> shown;
  group.on_first([&] {
    take_given(group.size());
    if (live) shown.emplace(live_port);  // a port that is taken is said before any work is done
  });
  if (group.size() > 1) store = group.broadcast(store);
  std::optional<Store> opened;
  group.together([&] { opened.emplace(store); });
  const Dataset data = opened->dataset();
  group.on_first([&] { settle(data); });
  share_settings(group);
  std::optional<RunDirectory> directory;
  group.together([&] {
    directory.emplace(!group.is_first() ? RunDirectory::nowhere()
                      : resume          ? RunDirectory::reopen(run)
                                        : RunDirectory::create(run, data.name));
  });
  show_settings();
  settings.options.data = traits_of(data);
  std::vector<std::string> notes = note_unused_options(*command, settings.list);
  for (std::string& note : note_unused_options(*command, common_list)) notes.push_back(std::move(note));
  Training training(*opened, settings.options, std::move(*directory), group);
  const Dataset& seen = training.input().layout.data;
  if (seen.num_nodes() < data.num_nodes())
    log::note("training sees {}", describe_training_share(seen.num_nodes(), data.num_nodes(), seen.graph.num_edges(),
                                                          data.graph.num_edges()));
  const fs::path folder = training.directory().path();
  if (shown) shown->begin(folder);
  std::optional<TrainingSummary> summary;
  try {
    summary = training.run();
  } catch (...) {
    if (group.is_first()) write_report(folder);
    throw;
  }
  if (!group.is_first()) return;
  const bool has_report = write_report(folder);
  if (shown) shown->finish();
  if (!common.json) return print_summary(*summary, data, has_report);
  nlohmann::json result = describe_result(*summary, data);
  result["notes"] = notes;
  result["choices"] = nlohmann::json::array();
  for (const Choice& choice : settings.choices)
    result["choices"].push_back({{"option", choice.option}, {"value", choice.value}, {"reason", choice.reason}});
  fmt::print("{}\n", to_text(result, 2));
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
  command.add_option("store", state->store, "graph store; optional with --resume");
  command.add_option("--run", state->run, "run folder to write; default: runs/NAME-N")->type_name("DIR")->group("Run");
  command.add_flag("--resume", state->resume, "continue the run in --run DIR")->group("Run");
  command.add_option("--recipe", state->settings.recipe, "named settings: " + recipe_names())
      ->type_name("NAME")
      ->group("Run");
  mark_advanced(
      command.add_option("--config", state->settings.config, "settings from a TOML file, such as config.toml of a run")
          ->type_name("FILE")
          ->group("Run"));
  command.add_flag("--live", state->live, "serve the report to a browser while training")->group("Run");
  mark_advanced(
      command.add_option("--live-port", state->live_port, "port for --live on 127.0.0.1; 0: any free port [0]")
          ->type_name("PORT")
          ->needs("--live")
          ->group("Run"));
  state->group_options.list_options(state->common_list);
  state->common.list_options(state->common_list);
  bind_options(command, state->settings.list);
  bind_options(command, state->common_list);
  command.callback([state] { state->run_command(); });
}

}  // namespace cgcn
