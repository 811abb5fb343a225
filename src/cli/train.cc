// clustergcn train: partition if needed, train, test the best model, print the results.
#include <fmt/format.h>

#include <optional>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/seed_summary.h"
#include "cli/training_summary.h"
#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "engine/run.h"
#include "process/process_group.h"
#include "report/run_report.h"
#include "train/recipes.h"
#include "train/result.h"

namespace cgcn {
namespace {

struct TrainCommand {
  CommonOptions common;
  dist::GroupOptions group_options;
  RunRequest request;
  OptionList common_list;
  bool live = false;
  uint16_t live_port = 0;
  CLI::App* command = nullptr;

  void run_command();

 private:
  struct Trained {
    std::optional<TrainingSummary> summary;
    std::vector<std::string> notes;
    bool has_report = false;
  };
  void run_in(dist::Group& group);
  Trained train_one(dist::Group& group, Run& run, std::optional<LiveReport>& shown);
  void run_seeds(dist::Group& group, Run& run);
};

void TrainCommand::run_command() {
  apply_common_options(common);
  for (const Option& option : request.settings.list.all())
    if (command->count("--" + option.name()) > 0) request.settings.given.emplace_back(option.name(), option.text());
  run_in_group(group_options, common.threads, [&](dist::Group& group) { run_in(group); });
}

void TrainCommand::run_in(dist::Group& group) {
  std::optional<LiveReport> shown;
  group.on_first([&] {
    if (live && request.seeds > 1) throw Error("shows one run", "--live", "leave it or --seeds out");
    if (live) shown.emplace(live_port);  // a port that is taken is said before any work is done
  });
  Run run(request, group);
  if (request.seeds > 1) return run_seeds(group, run);
  run.begin();
  const Trained trained = train_one(group, run, shown);
  if (!group.is_first()) return;
  if (shown) shown->finish();
  if (!common.json) return print_summary(*trained.summary, run.data(), trained.has_report);
  nlohmann::json result = describe_result(*trained.summary, run.data());
  result["notes"] = trained.notes;
  result.update(request.settings.describe_choices());
  fmt::print("{}\n", to_text(result, 2));
}

TrainCommand::Trained TrainCommand::train_one(dist::Group& group, Run& run, std::optional<LiveReport>& shown) {
  Trained trained;
  trained.notes = note_unused_options(*command, request.settings.list);
  for (std::string& note : note_unused_options(*command, common_list)) trained.notes.push_back(std::move(note));
  run.prepare();
  const Dataset &data = run.data(), &seen = run.training_data();
  if (seen.num_nodes() < data.num_nodes()) {
    log::note("training sees {}", describe_training_share(seen.num_nodes(), data.num_nodes(), seen.graph.num_edges(),
                                                          data.graph.num_edges()));
    data.graph.release_rows(0, data.num_nodes());  // counted, and not read again before an evaluation
  }
  if (shown) shown->begin(run.folder());
  try {
    trained.summary = run.train();
  } catch (...) {
    if (group.is_first()) write_run_report(run.folder());
    throw;
  }
  if (group.is_first()) trained.has_report = write_run_report(run.folder());
  return trained;
}

void TrainCommand::run_seeds(dist::Group& group, Run& run) {
  const fs::path folder = run.folder_of_seeds();
  const std::vector<uint64_t> seeds = run.seeds(folder);
  std::vector<SeedResult> results;
  std::optional<LiveReport> none;
  for (const uint64_t seed : seeds) {
    log::note("seed {} ({} of {})", seed, results.size() + 1, seeds.size());
    run.begin_seed(folder, seed);
    results.push_back({seed, std::move(*train_one(group, run, none).summary)});
  }
  if (!group.is_first()) return;
  nlohmann::json described = describe_seeds(results);
  described.update(request.settings.describe_choices());
  write_file_atomically(folder / "seeds.json", to_text(described, 2) + "\n");
  if (common.json)
    fmt::print("{}\n", to_text(described, 2));
  else
    print_seeds(results, run.data(), folder);
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
  command.add_option("store", state->request.store, "graph store; optional with --resume");
  command.add_option("--run", state->request.run, "run folder to write; default: runs/NAME-N")
      ->type_name("DIR")
      ->group("Run");
  command.add_flag("--resume", state->request.resume, "continue the run in --run DIR")->group("Run");
  command.add_option("--recipe", state->request.settings.recipe, "named settings [auto]: " + recipe_names())
      ->type_name("NAME")
      ->group("Run");
  command
      .add_option("--seeds", state->request.seeds,
                  "train N seeds, --seed and those after it; print mean and deviation [1]")
      ->type_name("N")
      ->check([](const std::string& text) {
        const bool fits = !text.empty() && text.size() < 6 &&
                          text.find_first_not_of("0123456789") == std::string::npos && std::stoul(text) >= 1 &&
                          std::stoul(text) <= 10000;
        return fits ? std::string() : fmt::format("'{}' is not a number from 1 to 10,000", text);
      })
      ->group("Run");
  mark_advanced(command
                    .add_option("--config", state->request.settings.config,
                                "settings from a TOML file, such as config.toml of a run")
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
  bind_options(command, state->request.settings.list);
  bind_options(command, state->common_list);
  command.callback([state] { state->run_command(); });
}

}  // namespace cgcn
