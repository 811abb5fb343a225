// What to generate: sizes, kind of labels and split, and the shapes of the paper's data sets (tables 3 and 11).
//
// A shape is named (--like), shrunk (--scale), and any of its sizes replaced (--nodes …). What is not replaced follows
// in proportion: half the nodes have half the edges and the same average degree.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/options.h"
#include "graph/csr_graph.h"

namespace cgcn {

enum class ShapeName { kSmall, kPpi, kReddit, kAmazon, kAmazon2m, kPapers100m };

struct GenerateOptions {
  ShapeName like = ShapeName::kSmall;
  double scale = 1;
  // 0 or empty: as the shape has it.
  uint64_t nodes = 0, edges = 0;
  uint32_t features = 0, classes = 0, graphs = 0;
  bool multi_label = false;
  bool identity = false;
  std::string split = {};
  uint64_t seed = 1;

  void list_options(OptionList& list);
};

// What features tell and labels follow from, in units of the noise on each feature.
struct Signal {
  float own = 0, community = 0, above = 0;  // spread of the hidden quantities: a node's own, its communities'
  uint32_t teacher_layers = 0;              // several labels per node: hops that they follow from
  float bend = 0;                           //   and how far from linear each hop is
  float classes = 0;                        // one class per node: length of the class's direction
  float label_noise = 0;                    // one class per node: share of nodes whose label is another's
};

// A shape with every number settled. Counts are exact: what is generated has just these.
struct Shape {
  std::string name;
  NodeId nodes = 0;
  uint64_t edges = 0;          // undirected, without loops or duplicates
  uint32_t features = 0;       // 0: the identity
  bool half_features = false;  // as float16
  uint32_t classes = 0;
  bool multi_label = false;
  std::array<uint64_t, 3> split{};       // nodes for training, validation, test
  std::vector<NodeId> graph_sizes;       // their sum is nodes; graphs follow each other in the order of ids
  std::vector<uint8_t> graph_roles;      // Role of each graph; empty if the split is by node
  std::vector<uint64_t> class_sizes;     // one class per node: sums to nodes
  std::vector<std::string> class_names;  // of the first classes, if they are known
  Signal signal;
};

// Throws Error for sizes that cannot be (more edges than pairs of nodes, more classes than nodes …).
Shape resolve_shape(const GenerateOptions& options);

// n items cut by weights: each gets its share rounded down or up, so that the sum is exact (largest remainders).
std::vector<uint64_t> apportion(uint64_t n, const std::vector<double>& weights);

}  // namespace cgcn
