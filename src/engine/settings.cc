#include "engine/settings.h"

#include <algorithm>

#include "common/error.h"
#include "train/class_weights.h"
#include "train/recipes.h"
#include "train/run_directory.h"

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

void RunSettings::settle(const Dataset& data) {
  const std::vector<std::string> named = apply({});
  if (!recipe.empty() && recipe != kAutoRecipe) return;
  choices = choose_settings(count_graph(data), options, [&](const std::string& option) {
    return std::find(named.begin(), named.end(), option) != named.end();
  });
  apply(choices);
  std::erase_if(choices, [&](const Choice& choice) { return list.find(choice.option)->is_default(); });
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
