// Figures of a graph and its labels, for people: degrees, components, homophily, class balance.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/dataset.h"

namespace cgcn {

struct DegreeStatistics {
  uint64_t least = 0, median = 0, largest = 0;
  double mean = 0;
  // Nodes by degree: 0, 1, 2–3, 4–7 … up to the largest; bin b > 0 begins at 2^(b-1).
  std::vector<uint64_t> histogram;
};

// Of the rows as stored: an undirected graph's degrees, a directed one's out-degrees.
DegreeStatistics degree_statistics(const CsrGraph& graph);

struct ComponentStatistics {
  uint64_t count = 0;     // direction does not matter
  uint64_t largest = 0;   // nodes
  uint64_t isolated = 0;  // nodes without an edge to another
};

ComponentStatistics component_statistics(const CsrGraph& graph);

struct LabelStatistics {
  std::vector<uint64_t> class_sizes;  // nodes that have the class
  uint64_t labelled = 0;              // nodes with at least one
  uint64_t least = 0, most = 0;       // labels per node, over the labelled
  double mean = 0;                    // likewise; of regression: of the numbers
  float lowest = 0, highest = 0;      // regression only
};

LabelStatistics label_statistics(const Labels& labels, NodeId num_nodes);

// How alike linked nodes are. One class per node: the share of edges whose ends have the same class. Several: the mean
// over edges of |common labels| / |labels of either|. Edges with an unlabelled end and self-loops do not count; -1
// if none does.
double edge_homophily(const CsrGraph& graph, const Labels& labels);

}  // namespace cgcn
