// clustergcn info: what a person wants to know of a graph before training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/command.h"
#include "common/memory.h"
#include "common/progress.h"
#include "graph/statistics.h"
#include "graph/store.h"

namespace cgcn {
namespace {

constexpr size_t kBarWidth = 32;
constexpr size_t kClassesShown = 12;
constexpr uint32_t kExampleWidth = 256;

struct Figures {
  DegreeStatistics degrees;
  ComponentStatistics components;
  LabelStatistics labels;
  double homophily = -1;
  uint64_t self_loops = 0;
};

Figures compute_figures(const Dataset& data) {
  const Progress progress("reading the graph");
  return {.degrees = degree_statistics(data.graph),
          .components = component_statistics(data.graph),
          .labels = label_statistics(data.labels, data.num_nodes()),
          .homophily = edge_homophily(data.graph, data.labels),
          .self_loops = data.graph.count_self_loops()};
}

// What training holds at once: all of it mapped from files, so that the kernel can take pages back.
struct MemoryNeeds {
  uint64_t adjacency, features, labels;
  uint64_t aggregated;  // A·X, made when the store is partitioned
  uint64_t embeddings;  // one layer of kExampleWidth for all nodes, which evaluation needs

  explicit MemoryNeeds(const Dataset& data)
      : adjacency(data.graph.offsets().size_bytes() + data.graph.targets().size_bytes() +
                  data.graph.weights().size_bytes()),
        features(data.features.stored_bytes()),
        labels(data.labels.stored_bytes()),
        aggregated(data.features.is_dense() ? uint64_t{data.num_nodes()} * data.features.columns() * sizeof(float) : 0),
        embeddings(uint64_t{data.num_nodes()} * kExampleWidth * sizeof(float)) {}
};

std::string percent(uint64_t count, uint64_t total) {
  return total == 0 ? "–" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(count) / static_cast<double>(total));
}

std::string bar(uint64_t value, uint64_t largest) {
  if (value == 0 || largest == 0) return "";
  const double share = static_cast<double>(value) / static_cast<double>(largest);
  std::string text;
  for (size_t i = 0; i < std::max<size_t>(1, std::lround(share * kBarWidth)); ++i) text += "█";
  return text;
}

void row(std::string_view name, std::string_view value) { fmt::print("  {:<18} {}\n", name, value); }

void print_histogram(const std::vector<uint64_t>& bins, uint64_t nodes) {
  const uint64_t largest = *std::max_element(bins.begin(), bins.end());
  const auto first = std::find_if(bins.begin(), bins.end(), [](uint64_t count) { return count > 0; });
  for (auto b = static_cast<size_t>(first - bins.begin()); b < bins.size(); ++b) {
    const uint64_t from = b == 0 ? 0 : uint64_t{1} << (b - 1), to = b == 0 ? 0 : (uint64_t{1} << b) - 1;
    const std::string range =
        from == to ? format_count(from) : fmt::format("{}–{}", format_count(from), format_count(to));
    fmt::print("    {:>15} {:>13} {:>7}  {}\n", range, format_count(bins[b]), percent(bins[b], nodes),
               bar(bins[b], largest));
  }
}

void print_classes(const Dataset& data, const LabelStatistics& labels) {
  std::vector<uint32_t> order(labels.class_sizes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return labels.class_sizes[a] > labels.class_sizes[b]; });
  const uint64_t largest = labels.class_sizes[order[0]];
  const size_t shown = order.size() > kClassesShown + 1 ? kClassesShown : order.size();
  for (size_t i = 0; i < shown; ++i) {
    const uint64_t size = labels.class_sizes[order[i]];
    fmt::print("    {:>15.15} {:>13} {:>7}  {}\n", data.class_name(order[i]), format_count(size),
               percent(size, labels.labelled), bar(size, largest));
  }
  if (shown < order.size())
    fmt::print("    … {} more, down to {} nodes\n", order.size() - shown,
               format_count(labels.class_sizes[order.back()]));
}

void print_labels(const Dataset& data, const Figures& figures) {
  if (!data.labels.present()) return row("labels", "none");
  const LabelStatistics& labels = figures.labels;
  if (data.labels.regression()) {
    row("labels",
        fmt::format("numbers (regression), {:.4g} to {:.4g}, mean {:.4g}", labels.lowest, labels.highest, labels.mean));
    return row("labelled nodes",
               fmt::format("{} ({})", format_count(labels.labelled), percent(labels.labelled, data.num_nodes())));
  }
  row("classes",
      fmt::format("{}, {}", data.labels.num_classes(), data.labels.multi_label() ? "multi-label" : "one per node"));
  row("labelled nodes",
      fmt::format("{} ({})", format_count(labels.labelled), percent(labels.labelled, data.num_nodes())));
  if (data.labels.multi_label())
    row("labels per node", fmt::format("{:.1f} on average, {} to {}", labels.mean, labels.least, labels.most));
  if (figures.homophily >= 0)
    row("edge homophily",
        fmt::format("{:.3f} ({})", figures.homophily,
                    data.labels.multi_label() ? "labels shared along an edge, of all labels of its two nodes"
                                              : "edges that join nodes of one class"));
}

void print_split(const Dataset& data) {
  if (data.split.empty()) return row("split", "none");
  const auto [train, validation, test] = data.split_sizes();
  row("split", fmt::format("{} training, {} validation, {} test", format_count(train), format_count(validation),
                           format_count(test)));
  if (const uint64_t none = data.num_nodes() - train - validation - test; none > 0)
    row("", fmt::format("{} not in the split", format_count(none)));
}

void print_text(const Dataset& data, const Store& store, const Figures& figures) {
  const uint64_t n = data.num_nodes();
  fmt::print("{}\n", data.name);
  row("nodes", format_count(n));
  row("edges",
      fmt::format("{}, {}{}", format_count(data.graph.num_edges()), data.graph.directed() ? "directed" : "undirected",
                  data.graph.weighted() ? ", weighted" : ""));
  if (data.num_graphs() > 1) row("separate graphs", format_count(data.num_graphs()));
  row("features", describe_features(data.features));
  if (!data.feature_names.empty()) row("feature columns", list_some(data.feature_names));
  print_labels(data, figures);
  print_split(data);
  row("components", fmt::format("{}, the largest of {} nodes ({})", format_count(figures.components.count),
                                format_count(figures.components.largest), percent(figures.components.largest, n)));
  if (figures.components.isolated > 0) row("isolated nodes", format_count(figures.components.isolated));
  if (figures.self_loops > 0) row("self-loops", format_count(figures.self_loops));
  row(data.graph.directed() ? "out-degree" : "degree",
      fmt::format("{:.1f} on average, median {}, {} to {}", figures.degrees.mean, format_count(figures.degrees.median),
                  format_count(figures.degrees.least), format_count(figures.degrees.largest)));
  const MemoryNeeds needs(data);
  row("on disk", format_bytes(store.bytes_on_disk()));
  const std::string means =
      data.features.is_dense() ? fmt::format(" {}", format_bytes(needs.aggregated)) : " (depends on the edges)";
  row("to train",
      fmt::format("{} mapped: adjacency {}, labels {}, features {}, A·X{}",
                  format_bytes(needs.adjacency + needs.features + needs.aggregated + needs.labels),
                  format_bytes(needs.adjacency), format_bytes(needs.labels), format_bytes(needs.features), means));
  row("to evaluate",
      fmt::format("{} for a layer of width {}, in memory or on disk", format_bytes(needs.embeddings), kExampleWidth));
  if (n > 0) {
    fmt::print("\n  nodes by degree\n");
    print_histogram(figures.degrees.histogram, n);
  }
  if (figures.labels.labelled > 0) {
    fmt::print("\n  nodes by class\n");
    print_classes(data, figures.labels);
  }
}

void print_json(const Dataset& data, const Store& store, const Figures& figures) {
  using nlohmann::json;
  const auto split = data.split_sizes();
  const MemoryNeeds needs(data);
  json result{{"name", data.name},
              {"nodes", data.num_nodes()},
              {"edges", data.graph.num_edges()},
              {"entries", data.graph.num_entries()},
              {"directed", data.graph.directed()},
              {"weighted", data.graph.weighted()},
              {"graphs", data.num_graphs()},
              {"self_loops", figures.self_loops},
              {"isolated_nodes", figures.components.isolated},
              {"components", {{"count", figures.components.count}, {"largest", figures.components.largest}}},
              {"degree",
               {{"mean", figures.degrees.mean},
                {"median", figures.degrees.median},
                {"least", figures.degrees.least},
                {"largest", figures.degrees.largest},
                {"histogram", figures.degrees.histogram}}},
              {"features", store.meta().at("features")},
              {"labels", store.meta().at("labels")},
              {"bytes",
               {{"on_disk", store.bytes_on_disk()},
                {"adjacency", needs.adjacency},
                {"features", needs.features},
                {"aggregated_features", needs.aggregated},
                {"labels", needs.labels},
                {"embeddings_256", needs.embeddings}}},
              {"graph_hash", data.graph_hash},
              {"content_hash", data.content_hash}};
  if (data.labels.present())
    result["labels"].update(
        {{"labelled_nodes", figures.labels.labelled},
         {"class_sizes", figures.labels.class_sizes},
         {"per_node",
          {{"mean", figures.labels.mean}, {"least", figures.labels.least}, {"most", figures.labels.most}}}});
  result["edge_homophily"] = figures.homophily >= 0 ? json(figures.homophily) : json(nullptr);
  result["split"] =
      data.split.empty() ? json(nullptr) : json{{"train", split[0]}, {"validation", split[1]}, {"test", split[2]}};
  fmt::print("{}\n", result.dump(2));
}

struct InfoCommand {
  CommonOptions common;
  std::string path;
  OptionList options;

  void run() {
    apply_common_options(common);
    const Store store(path);
    const Dataset data = store.dataset();
    const Figures figures = compute_figures(data);
    common.json ? print_json(data, store, figures) : print_text(data, store, figures);
  }
};

}  // namespace

void add_info_command(CLI::App& program) {
  auto state = std::make_shared<InfoCommand>();
  CLI::App* command = program.add_subcommand("info", "Describe a graph store");
  command->add_option("store", state->path, "graph store")->required();
  state->common.list_options(state->options);
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
