// Where the options of a run come from. Later ones win: defaults, a recipe, a TOML file, what was given by name.
// Without the name of a recipe it is `auto`, which looks at the graph and may try several networks for some epochs. A
// resumed run has its own configuration, and may change what was not learnt from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/choices.h"
#include "train/run_directory.h"
#include "train/run_options.h"
#include "train/stage.h"
#include "train/trial.h"

namespace cgcn {

struct RunSettings {
  RunSettings() { options.list_options(list); }

  RunOptions options;
  OptionList list;  // of `options`
  std::string recipe, config;
  uint32_t processes = 1;                                  // as many batches in a step if nobody says how many
  std::vector<std::pair<std::string, std::string>> given;  // option and value, as somebody named them

  std::vector<Choice> choices;  // that `auto` made and nobody overruled
  Trials trials;                // that decided some of them
  StageTimes before;            // what choosing took of the run's time

  // One line for all that have the same reason: "--layers 2 --hidden 256: few labels".
  std::vector<std::string> choice_lines();
  nlohmann::json describe_choices() const;           // with the trials
  void record_choices(const RunFiles& files) const;  // choices.json, if `auto` chose anything

  void check() { apply({}); }  // Error if a name or a value is wrong, before there is a graph
  void settle(const Store& store);
  void settle_resumed(const std::string& run);

 private:
  nlohmann::json recorded_;  // choices of the run that is resumed

  // Defaults, `values`, then file and names; returns which options the last two named.
  std::vector<std::string> apply(const std::vector<Choice>& values);
  void drop_impossible(std::vector<Candidate>& candidates, const Dataset& data);
  // Fills `trials`.
  void try_candidates(const std::vector<Candidate>& candidates, const Store& store);
  // After trials of so many times the epochs of a short one.
  std::vector<double> score_candidates(const std::vector<Candidate>& candidates, const std::vector<size_t>& which,
                                       uint32_t times, const Store& store);
};

// A path that means the same from any folder, since a run may be resumed from elsewhere; empty stays empty.
std::string whole_path(const std::string& path);

// The graph store that a run was trained on. Error if it is not known or not there any more.
std::string store_of_run(const std::string& run);

}  // namespace cgcn
