// clustergcn train: partition if needed, train, test the best model, print the results.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <future>
#include <optional>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/seed_summary.h"
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

constexpr std::string_view kSeedPrefix = "seed-";

fs::path seed_folder(const fs::path& folder, uint64_t seed) { return folder / fmt::format("{}{}", kSeedPrefix, seed); }

struct TrainCommand {
  CommonOptions common;
  dist::GroupOptions group_options;
  RunSettings settings;
  OptionList common_list;
  std::string store, run;
  bool resume = false, live = false;
  uint16_t live_port = 0;
  uint32_t seeds = 1;
  CLI::App* command = nullptr;

  void run_command();

 private:
  struct Trained {
    std::optional<TrainingSummary> summary;
    std::vector<std::string> notes;
    bool has_report = false;
  };
  void run_in(dist::Group& group);
  void run_seeds(dist::Group& group, const Store& opened);
  Trained train_one(dist::Group& group, const Store& opened, RunDirectory directory, std::optional<LiveReport>& shown);
  void take_given(uint32_t processes);
  void settle(const Dataset& data);
  std::string first_seed_run() const;
  void share_settings(dist::Group& group);
  void show_settings() const;
};

// What the command line says, and with it the store.
void TrainCommand::take_given(uint32_t processes) {
  settings.processes = processes;
  for (const Option& option : settings.list.all())
    if (command->count("--" + option.name()) > 0) settings.given.emplace_back(option.name(), option.text());
  if (resume) {
    const std::string configured = seeds > 1 ? first_seed_run() : run;
    settings.settle_resumed(configured);
    if (store.empty()) store = store_of_run(configured);
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

// Of a folder of several seeds: the run whose settings the others have, too.
std::string TrainCommand::first_seed_run() const {
  if (run.empty()) throw Error("needs the run folder", "--resume", "--run DIR");
  std::optional<uint64_t> lowest;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, problem)) {
    const std::string name = entry.path().filename().string();
    uint64_t seed = 0;
    const char *begin = name.c_str() + kSeedPrefix.size(), *end = name.c_str() + name.size();
    if (!name.starts_with(kSeedPrefix) || !RunDirectory::is_run(entry.path())) continue;
    if (const auto [stop, bad] = std::from_chars(begin, end, seed); bad == std::errc() && stop == end)
      lowest = std::min(seed, lowest.value_or(seed));
  }
  if (!lowest) throw Error("holds no run of a seed", run, "train without --resume");
  return seed_folder(run, *lowest).string();
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

void TrainCommand::run_command() {
  apply_common_options(common);
  run_in_group(group_options, common, [&](dist::Group& group) { run_in(group); });
}

void TrainCommand::run_in(dist::Group& group) {
  std::optional<LiveReport> shown;
  group.on_first([&] {
    take_given(group.size());
    if (live && seeds > 1) throw Error("shows one run", "--live", "leave it or --seeds out");
    if (live) shown.emplace(live_port);  // a port that is taken is said before any work is done
  });
  if (group.size() > 1) store = group.broadcast(store);
  std::optional<Store> opened;
  group.together([&] { opened.emplace(store); });
  const Dataset data = opened->dataset();
  group.on_first([&] { settle(data); });
  share_settings(group);
  if (seeds > 1) return run_seeds(group, *opened);
  std::optional<RunDirectory> directory;
  group.together([&] {
    directory.emplace(!group.is_first() ? RunDirectory::nowhere()
                      : resume          ? RunDirectory::reopen(run)
                                        : RunDirectory::create(run, data.name));
  });
  const Trained trained = train_one(group, *opened, std::move(*directory), shown);
  if (!group.is_first()) return;
  if (shown) shown->finish();
  if (!common.json) return print_summary(*trained.summary, data, trained.has_report);
  nlohmann::json result = describe_result(*trained.summary, data);
  result["notes"] = trained.notes;
  result["choices"] = nlohmann::json::array();
  for (const Choice& choice : settings.choices)
    result["choices"].push_back({{"option", choice.option}, {"value", choice.value}, {"reason", choice.reason}});
  fmt::print("{}\n", to_text(result, 2));
}

TrainCommand::Trained TrainCommand::train_one(dist::Group& group, const Store& opened, RunDirectory directory,
                                              std::optional<LiveReport>& shown) {
  Trained trained;
  const Dataset data = opened.dataset();
  show_settings();
  settings.options.data = traits_of(data);
  trained.notes = note_unused_options(*command, settings.list);
  for (std::string& note : note_unused_options(*command, common_list)) trained.notes.push_back(std::move(note));
  Training training(opened, settings.options, std::move(directory), group);
  const Dataset& seen = training.input().layout.data;
  if (seen.num_nodes() < data.num_nodes())
    log::note("training sees {}", describe_training_share(seen.num_nodes(), data.num_nodes(), seen.graph.num_edges(),
                                                          data.graph.num_edges()));
  const fs::path folder = training.directory().path();
  if (shown) shown->begin(folder);
  try {
    trained.summary = training.run();
  } catch (...) {
    if (group.is_first()) write_report(folder);
    throw;
  }
  if (group.is_first()) trained.has_report = write_report(folder);
  return trained;
}

// Every seed is a run of its own, in a folder below. Resumed: those that were begun go on, the others follow.
void TrainCommand::run_seeds(dist::Group& group, const Store& opened) {
  const uint64_t first = settings.options.train.seed;
  fs::path folder = run;
  const std::string name = opened.dataset().name;
  group.on_first([&] {
    std::error_code problem;
    for (uint32_t n = 1; run.empty() && (n == 1 || fs::exists(folder, problem)); ++n)
      folder = fs::path("runs") / fmt::format("{}-seeds-{}", name, n);
    if (!resume && fs::exists(folder, problem) && !fs::is_empty(folder, problem))
      throw Error("already exists", folder.string(), "another --run, or --resume to continue it");
  });
  std::vector<SeedResult> results;
  std::optional<LiveReport> none;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    settings.options.train.seed = seed;
    std::optional<RunDirectory> directory;
    group.together([&] {
      const fs::path path = seed_folder(folder, seed);
      directory.emplace(!group.is_first()                      ? RunDirectory::nowhere()
                        : resume && RunDirectory::is_run(path) ? RunDirectory::reopen(path)
                                                               : RunDirectory::create(path, name));
    });
    log::note("seed {} ({} of {})", seed, seed - first + 1, seeds);
    Trained trained = train_one(group, opened, std::move(*directory), none);
    results.push_back({seed, std::move(*trained.summary)});
  }
  settings.options.train.seed = first;
  if (!group.is_first()) return;
  const nlohmann::json described = describe_seeds(results);
  write_file_atomically(folder / "seeds.json", to_text(described, 2) + "\n");
  if (common.json)
    fmt::print("{}\n", to_text(described, 2));
  else
    print_seeds(results, opened.dataset(), folder);
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
  command.add_option("--seeds", state->seeds, "train N seeds, --seed and those after it; print mean and deviation [1]")
      ->type_name("N")
      ->check(CLI::Range(1u, 10000u))
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
