#include "engine/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/timer.h"
#include "train/class_weights.h"
#include "train/loop.h"
#include "train/prepare.h"
#include "train/recipes.h"
#include "train/run_directory.h"
#include "train/selection.h"
#include "train/trial.h"

namespace cgcn {

std::string whole_path(const std::string& path) { return path.empty() ? path : fs::absolute(path).string(); }

namespace {

void make_paths_whole(RunOptions& options) {
  options.partition.from = whole_path(options.partition.from);
  if (is_weights_file(options.train.class_weights))
    options.train.class_weights = whole_path(options.train.class_weights);
}

}  // namespace

std::vector<std::string> RunSettings::apply(const std::vector<Choice>& values) {
  for (Option& option : list.all()) option.set(option.default_text(), "--" + option.name());
  options.train.batches_per_step = 0;  // which nobody can say
  for (const Choice& choice : values) list.set(choice.option, choice.value, "recipe auto");
  if (!recipe.empty()) apply_recipe(find_recipe(recipe), list);
  std::vector<std::string> named;
  if (!config.empty()) named = read_toml(config, list);
  for (const auto& [name, value] : given) {
    list.set(name, value, "");
    named.push_back(name);
  }
  if (options.train.batches_per_step == 0) options.train.batches_per_step = processes;
  make_paths_whole(options);
  return named;
}

void RunSettings::settle(const Store& store) {
  const std::vector<std::string> named = apply({});
  if (!recipe.empty() && recipe != kAutoRecipe) return;
  std::vector<Candidate> candidates = candidate_settings(
      count_graph(store.dataset()), options,
      [&](const std::string& option) { return std::find(named.begin(), named.end(), option) != named.end(); });
  if (candidates.size() > 1) {
    try_candidates(candidates, store);
    log::note("auto: {}", trials.text());
  }
  choices = std::move(candidates[trials.taken].choices);
  apply(choices);
  std::erase_if(choices, [&](const Choice& choice) { return list.find(choice.option)->is_default(); });
}

void RunSettings::try_candidates(const std::vector<Candidate>& candidates, const Store& store) {
  const Timer timer;
  std::vector<size_t> all(candidates.size());
  std::iota(all.begin(), all.end(), 0u);
  const std::vector<double> scores = score_candidates(candidates, all, 1, store);
  for (const size_t i : all) trials.list.push_back({candidates[i].network, scores[i], {}});
  trials.by = selection_of(options.train.select_by, store.dataset().labels);
  trials.taken = trials.best(store.dataset());
  if (!trials.is_decided()) {
    const std::vector<size_t> two = {0, trials.taken};
    const std::vector<double> longer = score_candidates(candidates, two, 2, store);
    for (size_t i = 0; i < two.size(); ++i) trials.list[two[i]].longer = longer[i];
    trials.taken = trials.best(store.dataset());
  }
  trials.seconds = timer.seconds();
}

// With a schedule of its own that ends with the trial.
std::vector<double> RunSettings::score_candidates(const std::vector<Candidate>& candidates,
                                                  const std::vector<size_t>& which, uint32_t times,
                                                  const Store& store) {
  const auto take = [&](size_t i) {
    apply(candidates[i].choices);
    options.data = traits_of(store.dataset());
    return times * trial_epochs(options.train.epochs);
  };
  uint64_t epochs = 0;
  for (const size_t i : which) epochs += take(i);
  std::optional<Progress> progress;
  std::vector<double> scores;
  for (const size_t i : which) {
    const uint32_t tried = take(i);
    if (scores.empty()) {
      prepare_kept_files(plan_training(store, options));  // whose progress is shown
      progress.emplace(times == 1 ? "Trying networks" : "Comparing two networks", epochs, "epochs");
    }
    options.train.epochs = tried;
    options.train.warmup = std::min(options.train.warmup, tried / 20);
    const log::Silence silence;
    scores.push_back(-std::numeric_limits<double>::infinity());
    try {
      const double score = score_settings(store, options, [&] { progress->advance(); });
      if (!std::isnan(score)) scores.back() = score;
    } catch (const NotFinite&) {  // the others may do better
    }
  }
  return scores;
}

std::vector<std::string> RunSettings::choice_lines() {
  std::vector<std::pair<std::string, std::string>> groups;  // reason, and options as they are typed
  for (const Choice& choice : choices) {
    const std::string option = list.find(choice.option)->command_line();
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == choice.reason; });
    if (same == groups.end())
      groups.emplace_back(choice.reason, option);
    else
      same->second += " " + option;
  }
  std::vector<std::string> lines;
  for (const auto& [reason, options] : groups) lines.push_back(options + ": " + reason);
  return lines;
}

nlohmann::json RunSettings::describe_choices() const {
  nlohmann::json described = {{"choices", nlohmann::json::array()}};
  for (const Choice& choice : choices)
    described["choices"].push_back({{"option", choice.option}, {"value", choice.value}, {"reason", choice.reason}});
  if (!trials.list.empty()) described["trials"] = trials.describe();
  return described;
}

void RunSettings::record_choices(const RunFiles& files) const {
  if (!choices.empty() || !trials.list.empty())
    write_file_atomically(files.choices(), to_text(describe_choices(), 2) + "\n");
}

void RunSettings::settle_resumed(const std::string& run) {
  if (run.empty()) throw Error("needs the run folder", "--resume", "--run DIR");
  if (!recipe.empty() || !config.empty())
    throw Error("cannot be used with --resume: a resumed run keeps its settings",
                recipe.empty() ? "--config" : "--recipe", "leave it out");
  RunDirectory::require(run);
  for (Option& option : list.all()) option.set(option.default_text(), "--" + option.name());
  read_toml(RunFiles(run).config(), list);
  for (const auto& [name, value] : given) {
    const Option& option = *list.find(name);
    if (!option.may_change_on_resume() && option.text() != value) {
      const std::string& why = option.why_not_resumable();
      throw Error(fmt::format("was {} and cannot change when a run is resumed{}{}", option.text(),
                              why.empty() ? "" : ": ", why),
                  "--" + name, "leave it out, or train again with another --run");
    }
    list.set(name, value, "");
  }
  make_paths_whole(options);
}

std::string store_of_run(const std::string& run) {
  std::string store = recorded_store(run);  // also of a run that was stopped before its first checkpoint
  std::error_code problem;
  if (store.empty()) throw Error("does not name its graph store", run, "clustergcn train STORE --run DIR --resume");
  if (!fs::exists(store, problem))
    throw Error("the graph store of this run no longer exists", store,
                fmt::format("if it was moved: clustergcn train STORE --run {} --resume", shell_word(run)));
  return store;
}

}  // namespace cgcn
