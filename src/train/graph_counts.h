// What the recipe `auto` (train/choices.h) looks at: counts of a graph, its features and the labels that training
// knows.
#pragma once

#include <cstdint>

#include "graph/dataset.h"

namespace cgcn {

// Two passes over the edges, one over the features of some rows.
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
  bool neighbours_are_alike() const;  // enough to be of use as they are
  bool labels_are_few() const;
  bool few_labels() const;    // too few to learn more from than features of neighbours that are alike
  bool many_columns() const;  // more dense ones than labels, which tell by chance alone what each label is
};

GraphCounts count_graph(const Dataset& data);

}  // namespace cgcn
