#include "engine/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

// Nothing if there is none, or if the file is not as written: a run continues without it.
nlohmann::json recorded_choices(const RunFiles& files) {
  std::error_code problem;
  if (!fs::is_regular_file(files.choices(), problem)) return {};
  const nlohmann::json choices = parse_json(read_text_file(files.choices()));
  return choices.is_object() ? choices : nlohmann::json();
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
  drop_impossible(candidates, store.dataset());
  if (candidates.size() > 1) {
    try_candidates(candidates, store);
    log::note("auto: {}", trials.text());
  }
  choices = std::move(candidates[trials.taken].choices);
  apply(choices);
  std::erase_if(choices, [&](const Choice& choice) { return list.find(choice.option)->is_default(); });
}

void RunSettings::try_candidates(const std::vector<Candidate>& candidates, const Store& store) {
  if (processes > 1) log::note("the first of {} processes tries networks, the others wait", processes);
  apply(candidates[0].choices);
  prepare_kept_files(plan_training(store, options), before);  // whose progress is shown
  const Timer timer;
  std::vector<size_t> all(candidates.size());
  std::iota(all.begin(), all.end(), 0u);
  const std::vector<double> scores = score_candidates(candidates, all, 1, store);
  for (const size_t i : all) trials.list.push_back({candidates[i].network, scores[i], {}});
  trials.by = selection_of(options.train.select_by, store.dataset().labels);
  trials.taken = trials.best_of_short(store.dataset());
  if (trials.are_to_be_compared(trials.taken)) {
    const std::vector<double> longer = score_candidates(candidates, {0, trials.taken}, 2, store);
    trials.list[0].longer = longer[0];
    trials.list[trials.taken].longer = longer[1];
    if (longer[1] <= longer[0]) trials.taken = 0;
  }
  trials.seconds = timer.seconds();
  before.add(Stage::kTrials, trials.seconds);
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
  Progress progress(times == 1 ? "Trying networks" : "Comparing two networks", epochs, "epochs");
  std::vector<double> scores;
  for (const size_t i : which) {
    options.train.epochs = take(i);
    options.train.warmup = std::min(options.train.warmup, options.train.epochs / 20);
    const log::Silence silence;
    scores.push_back(-std::numeric_limits<double>::infinity());
    try {
      const double score = score_settings(store, options, [&] { progress.advance(); });
      if (!std::isnan(score)) scores.back() = score;
    } catch (const NotFinite&) {  // the others may do better
    } catch (const Error&) {      // one that nobody asked for may need what is not there: memory, or METIS
      if (i == 0) throw;
    }
  }
  return scores;
}

// Other networks than the first may contradict what was given.
void RunSettings::drop_impossible(std::vector<Candidate>& candidates, const Dataset& data) {
  const auto is_impossible = [&](const Candidate& candidate) {
    apply(candidate.choices);
    try {
      require_possible(options, data);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  candidates.erase(std::remove_if(candidates.begin() + 1, candidates.end(), is_impossible), candidates.end());
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
  if (recorded_.is_object()) return recorded_;
  nlohmann::json described = {{"choices", nlohmann::json::array()}};
  for (const Choice& choice : choices)
    described["choices"].push_back({{"option", choice.option}, {"value", choice.value}, {"reason", choice.reason}});
  if (!trials.list.empty()) described["trials"] = trials.describe();
  return described;
}

void RunSettings::record_choices(const RunFiles& files) const {
  if (!choices.empty() || !trials.list.empty() || recorded_.is_object())
    write_file_atomically(files.choices(), to_text(describe_choices(), 2) + "\n");
}

void RunSettings::settle_resumed(const std::string& run) {
  if (run.empty()) throw Error("needs the run folder", "--resume", "--run DIR");
  RunDirectory::require(run);
  if (!recipe.empty() || !config.empty())
    throw Error("cannot be used with --resume: a resumed run keeps its settings",
                recipe.empty() ? "--config" : "--recipe", "leave it out");
  recorded_ = recorded_choices(RunFiles(run));
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
