// The recipe `auto`, which `train` takes unless another one is named: settings chosen from counts of the graph, each
// with its reason; and, where a short training tells more than counts can, other networks to be tried beside them
// (engine/settings.h does it). The bits of a run are a function of data, options and seed as ever.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/graph_counts.h"
#include "train/run_options.h"

namespace cgcn {

struct Choice {
  std::string option, value, reason;
  bool operator==(const Choice& other) const { return option == other.option && value == other.value; }
};

// All choices for one network.
struct Candidate {
  std::string network;  // its name, for people
  std::vector<Choice> choices;
};

// The first is what the counts speak for; the others, if there are any, are worth a trial.
// known: what is set by hand, over the defaults. is_set: whether an option is; it is left alone, and so is what would
// contradict it.
std::vector<Candidate> candidate_settings(const GraphCounts& counts, const RunOptions& known,
                                          const std::function<bool(const std::string&)>& is_set);

// Of a trial of settings that are to be trained for so many epochs; 0: too few to try anything.
uint32_t trial_epochs(uint32_t epochs);

}  // namespace cgcn
