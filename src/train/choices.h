// The recipe `auto`, which `train` takes unless another one is named: settings chosen from counts of the graph, each
// with its reason; and, where a short training tells more than counts can, other networks to be tried beside them
// (engine/settings.h does it). The bits of a run are a function of data, options and seed as ever.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/run_options.h"

namespace cgcn {

// What the choices are made from. One pass over the edges, one over the features of some rows.
struct GraphCounts {
  uint64_t nodes = 0, edges = 0;
  uint64_t training = 0;  // nodes
  uint64_t labelled = 0;  // training nodes with a label
  uint64_t classes = 0;
  bool multi_label = false, regression = false, has_validation = false;
  uint64_t joining_edges = 0;   // between a training node and one that is none
  uint64_t training_edges = 0;  // between training nodes
  // Of edges whose two labels training or validation knows, those that join equal classes: 0 by chance, 1 all of them;
  // -1: too few to say.
  double homophily = -1;
  // Of the variance of the training nodes' log degree, the share that lies between classes, or of their value (of
  // regression) the share that log degree explains: 0 by chance, 1 all of it. Not of several labels per node.
  double told_by_degree = 0;
  FeatureMatrix::Kind features = FeatureMatrix::Kind::kIdentity;
  uint64_t columns = 0;
  double entries_per_row = 0;     // of sparse features
  bool negative_entries = false;  // in sparse features
  double uneven_columns = 0;      // share of dense columns whose mean or deviation is far from 0 and 1

  double labelled_share() const { return nodes > 0 ? static_cast<double>(labelled) / static_cast<double>(nodes) : 0; }
  uint64_t labelled_per_class() const { return classes > 0 ? labelled / classes : 0; }
  bool labels_are_few() const;
  bool few_labels() const;    // too few to learn more from than features of neighbours that are alike
  bool many_columns() const;  // more dense ones than labels, which tell by chance alone what each label is
};

GraphCounts count_graph(const Dataset& data);

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
