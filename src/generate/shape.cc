#include "generate/shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "common/progress.h"
#include "common/random.h"
#include "generate/streams.h"
#include "graph/dataset.h"

namespace cgcn {
namespace {

// A shape before scaling: the numbers of the paper's tables.
struct Template {
  const char* name;
  uint64_t nodes, edges;
  uint32_t features, classes;
  std::array<uint64_t, 3> split;
  bool multi_label = false;
  std::array<uint32_t, 3> graphs = {1, 0, 0};  // by role; one graph is split by node
  // One class per node: known class sizes, the size of each further class over that of the one before, names, noise.
  std::vector<uint64_t> first_classes = {};
  double class_decay = 0.9;
  std::vector<std::string> class_names = {};
  float label_noise = 0.04f;
  bool half_features = false;
};

const Template& template_of(ShapeName name) {
  static const Template kSmall{.name = "small",
                               .nodes = 10'000,
                               .edges = 100'000,
                               .features = 64,
                               .classes = 10,
                               .split = {6'000, 2'000, 2'000}};
  static const Template kPpi{.name = "ppi-like",
                             .nodes = 56'944,
                             .edges = 818'716,
                             .features = 50,
                             .classes = 121,
                             .split = {44'906, 6'514, 5'524},
                             .multi_label = true,
                             .graphs = {20, 2, 2}};
  static const Template kReddit{.name = "reddit-like",
                                .nodes = 232'965,
                                .edges = 11'606'919,
                                .features = 602,
                                .classes = 41,
                                .split = {153'932, 23'699, 55'334},
                                .class_decay = 0.93,
                                .label_noise = 0.035f};
  static const Template kAmazon{.name = "amazon-like",
                                .nodes = 334'863,
                                .edges = 925'872,
                                .features = 0,
                                .classes = 58,
                                .split = {91'973, 0, 242'890},
                                .multi_label = true};
  static const Template kAmazon2m{.name = "amazon2m-like",
                                  .nodes = 2'449'029,
                                  .edges = 61'859'140,
                                  .features = 100,
                                  .classes = 47,
                                  .split = {1'709'997, 0, 739'032},
                                  .first_classes = {668'950, 172'199, 158'771},
                                  .class_decay = 0.896,
                                  .class_names = {"Books", "CDs & Vinyl", "Toys & Games"},
                                  .label_noise = 0.09f};
  // ogbn-papers100M. Every node has a label here, so the split of its 1,546,782 labelled nodes is scaled to all.
  static const Template kPapers100m{.name = "papers100m-like",
                                    .nodes = 111'059'956,
                                    .edges = 1'615'685'872,
                                    .features = 128,
                                    .classes = 172,
                                    .split = {86'676'239, 8'994'109, 15'389'608},
                                    .class_decay = 0.97,
                                    .half_features = true};
  switch (name) {
    case ShapeName::kPapers100m:
      return kPapers100m;
    case ShapeName::kPpi:
      return kPpi;
    case ShapeName::kReddit:
      return kReddit;
    case ShapeName::kAmazon:
      return kAmazon;
    case ShapeName::kAmazon2m:
      return kAmazon2m;
    case ShapeName::kSmall:
      break;
  }
  return kSmall;
}
// Settled by training on the result (docs/generate.md): depth pays and cut edges cost where labels follow from several
// hops.
Signal signal_of(const Shape& shape, float label_noise) {
  if (!shape.multi_label)
    return {.own = 1, .community = 0.5f, .above = 0.5f, .classes = 1.5f, .label_noise = label_noise};
  if (shape.features == 0) return {.own = 0.5f, .community = 1, .above = 1, .teacher_layers = 2, .bend = 0.5f};
  return {.own = 3, .community = 0.4f, .above = 0.2f, .teacher_layers = 5, .bend = 3};
}

std::array<double, 3> parse_split(const std::string& text) {
  std::array<double, 3> shares{};
  const char* at = text.data();
  const char* end = at + text.size();
  for (size_t i = 0; i < 3; ++i) {
    const auto [next, problem] = std::from_chars(at, end, shares[i]);
    const bool last = i == 2;
    if (problem != std::errc() || !(shares[i] >= 0) || !(shares[i] <= 1e12) ||
        (last ? next != end : next == end || *next != '/'))
      throw Error(fmt::format("'{}' is not three numbers such as 60/20/20", text), "--split");
    at = next + (last ? 0 : 1);
  }
  if (!(shares[0] > 0)) throw Error("leaves no nodes for training", "--split", "a first share above 0");
  return shares;
}

uint64_t scaled(uint64_t count, double factor) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(count) * factor));
}

// Sizes of the classes, falling: those that are known in proportion, the others by a constant ratio.
std::vector<uint64_t> class_sizes(const Template& base, uint32_t classes, uint64_t nodes) {
  std::vector<double> weights(classes);
  double known = 0;
  const size_t first = classes == base.classes ? base.first_classes.size() : 0;
  for (size_t c = 0; c < first; ++c) known += weights[c] = static_cast<double>(base.first_classes[c]);
  double tail = 0;
  for (size_t c = first; c < classes; ++c)
    tail += weights[c] = std::pow(base.class_decay, static_cast<double>(c - first));
  const double rest = first > 0 ? static_cast<double>(base.nodes) - known : 1;
  for (size_t c = first; c < classes; ++c) weights[c] *= rest / tail;
  return apportion(nodes, weights);
}

// Graphs of one role differ in size by up to three times, as PPI's do.
void add_graphs(Shape& shape, uint32_t count, uint64_t nodes, uint8_t role, uint64_t seed) {
  if (count == 0) return;
  Random random = stream(seed, Stream::kGraphSizes, role);
  std::vector<double> weights(count);
  for (double& weight : weights) weight = 0.5 + random.uniform_double();
  for (const uint64_t size : apportion(nodes, weights)) {
    shape.graph_sizes.push_back(static_cast<NodeId>(size));
    shape.graph_roles.push_back(role);
  }
}

void settle_graphs(Shape& shape, const Template& base, const GenerateOptions& options) {
  const uint32_t base_graphs = std::accumulate(base.graphs.begin(), base.graphs.end(), 0u);
  const uint32_t graphs = options.graphs > 0 ? options.graphs : base_graphs;
  if (graphs == 1) {
    shape.graph_sizes = {shape.nodes};
    return;
  }
  if (uint64_t{graphs} * 2 > shape.nodes)
    throw Error(fmt::format("{} graphs need at least {} nodes; there are {}", graphs,
                            format_count(uint64_t{graphs} * 2), format_count(shape.nodes)),
                "--graphs", "fewer graphs or more --nodes");
  // Whole graphs for each role: at least one if the role has nodes at all.
  std::array<uint64_t, 3> by_role{};
  if (graphs == base_graphs && options.split.empty()) {
    std::copy(base.graphs.begin(), base.graphs.end(), by_role.begin());
  } else {
    for (size_t role = 1; role < 3; ++role)
      if (shape.split[role] > 0)
        by_role[role] = std::max<uint64_t>(1, scaled(graphs, static_cast<double>(shape.split[role]) / shape.nodes));
    if (by_role[1] + by_role[2] >= graphs)
      throw Error(fmt::format("{} graphs are too few for this split, which goes by whole graphs", graphs), "--graphs",
                  "more graphs, or --split 100/0/0");
    by_role[0] = graphs - by_role[1] - by_role[2];
  }
  for (size_t role = 0; role < 3; ++role) {
    if (by_role[role] * 2 > shape.split[role])
      throw Error(
          fmt::format("{} graphs for {} nodes of the split's part {}", by_role[role], shape.split[role], role + 1),
          "--split", "fewer --graphs or more --nodes");
    add_graphs(shape, static_cast<uint32_t>(by_role[role]), shape.split[role], static_cast<uint8_t>(role),
               options.seed);
  }
}

void check_edges(const Shape& shape) {
  unsigned __int128 pairs = 0;
  for (const NodeId size : shape.graph_sizes) pairs += static_cast<unsigned __int128>(size) * (size - 1) / 2;
  if (shape.edges > pairs)
    throw Error(fmt::format("{} edges are more than the {} pairs of nodes{}", format_count(shape.edges),
                            format_count(static_cast<uint64_t>(pairs)),
                            shape.graph_sizes.size() > 1 ? " within the graphs" : ""),
                "--edges", "fewer edges or more --nodes");
}

}  // namespace

void GenerateOptions::list_options(OptionList& list) {
  list.begin_group("Shape");
  list.add_choice("like", &like,
                  {{"small", ShapeName::kSmall},
                   {"ppi", ShapeName::kPpi},
                   {"reddit", ShapeName::kReddit},
                   {"amazon", ShapeName::kAmazon},
                   {"amazon2m", ShapeName::kAmazon2m},
                   {"papers100m", ShapeName::kPapers100m}},
                  "data set whose size and type to imitate");
  list.add("scale", &scale, "factor on the number of nodes and edges")
      .range(1e-6, 1000)
      .value("FACTOR")
      .needs([this] { return nodes == 0; }, "--nodes says the size");
  list.add("nodes", &nodes, "number of nodes; 0: the shape's").range(0, 4e9).value("N");
  list.add("edges", &edges, "number of undirected edges; 0: the shape's average degree").range(0, 1e12).value("E");
  list.add("features", &features, "columns of features; 0: the shape's").range(0, 1e6).value("F");
  list.add("identity", &identity, "no features (identity matrix)");
  list.add("classes", &classes, "number of classes; 0: the shape's").range(0, 1e6).value("C");
  list.add("multi-label", &multi_label, "multi-label: any number of classes per node");
  list.add("graphs", &graphs, "separate graphs, each entirely in one part of the split; 0: the shape's")
      .range(0, 1e6)
      .value("K");
  list.add("split", &split, "train/validation/test split, such as 60/20/20; default: the shape's").value("A/B/C");
  list.add("seed", &seed, "random seed");
}

std::vector<uint64_t> apportion(uint64_t n, const std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  CGCN_CHECK(total > 0);
  std::vector<uint64_t> counts(weights.size());
  std::vector<std::pair<double, size_t>> remainders(weights.size());
  uint64_t given = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = static_cast<double>(n) * weights[i] / total;
    given += counts[i] = static_cast<uint64_t>(share);
    remainders[i] = {static_cast<double>(counts[i]) - share, i};  // largest remainder first, then the lowest index
  }
  std::sort(remainders.begin(), remainders.end());
  CGCN_CHECK(given <= n);
  for (size_t i = 0; i < n - given; ++i) ++counts[remainders[i % remainders.size()].second];
  return counts;
}

Shape resolve_shape(const GenerateOptions& options) {
  const Template& base = template_of(options.like);
  const uint64_t nodes = options.nodes > 0 ? options.nodes : scaled(base.nodes, options.scale);
  if (nodes < 2 || nodes >= kNoNode)
    throw Error(fmt::format("{} nodes cannot be generated", format_count(nodes)),
                options.nodes > 0 ? "--nodes" : "--scale", "between 2 and 4 billion");
  const double factor = static_cast<double>(nodes) / static_cast<double>(base.nodes);
  Shape shape;
  shape.name = base.name;
  shape.nodes = static_cast<NodeId>(nodes);
  shape.edges = options.edges > 0 ? options.edges : scaled(base.edges, factor);
  shape.features = options.identity ? 0 : options.features > 0 ? options.features : base.features;
  shape.half_features = base.half_features;
  shape.classes = options.classes > 0 ? options.classes : base.classes;
  shape.multi_label = base.multi_label || options.multi_label;
  shape.signal = signal_of(shape, base.label_noise);
  if (options.identity && options.features > 0)
    throw Error("the identity has no columns to choose", "--features", "leave out --identity or --features");
  std::array<double, 3> shares{};
  std::copy(base.split.begin(), base.split.end(), shares.begin());
  if (!options.split.empty()) shares = parse_split(options.split);
  const auto counts = apportion(nodes, {shares[0], shares[1], shares[2]});
  std::copy(counts.begin(), counts.end(), shape.split.begin());
  settle_graphs(shape, base, options);
  check_edges(shape);
  if (!shape.multi_label) {
    if (shape.classes > nodes)
      throw Error(fmt::format("{} classes for {} nodes", shape.classes, format_count(nodes)), "--classes",
                  "fewer classes or more --nodes");
    shape.class_sizes = class_sizes(base, shape.classes, nodes);
    if (shape.classes == base.classes) shape.class_names = base.class_names;
  }
  return shape;
}

}  // namespace cgcn
