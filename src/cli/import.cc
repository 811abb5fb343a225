// clustergcn import: outside files into a graph store, with a report of what was found and fixed.
#include "engine/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/import_command.h"
#include "common/json.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/timer.h"
#include "graph/store.h"

namespace cgcn {
namespace {

using nlohmann::json;

std::string describe_split(const Dataset& data) {
  if (data.split.empty()) return "none";
  const auto [train, validation, test] = data.split_sizes();
  return fmt::format("{} train, {} validation, {} test", format_count(train), format_count(validation),
                     format_count(test));
}

// Class numbers are taken as they are: a zip code as a label makes a model with an output for every number below it.
void warn_of_gaps(const Labels& labels) {
  if (!labels.present() || labels.multi_label() || labels.regression()) return;
  std::vector<bool> occurs(labels.num_classes(), false);
  for (const int32_t label : labels.classes())
    if (label >= 0) occurs[static_cast<size_t>(label)] = true;
  const auto found = static_cast<uint64_t>(std::count(occurs.begin(), occurs.end(), true));
  if (labels.num_classes() > 100 && found < labels.num_classes() / 2)
    log::warn(
        "classes are numbered up to {}, and {} of them occur: a model has an output for each; give classes names, or "
        "numbers from 0 without gaps",
        format_count(labels.num_classes() - 1), format_count(found));
}

}  // namespace

void print_import(const fs::path& store, bool as_json, const Reader& reader, const ImportReport& report,
                  double seconds) {
  const Store written(store, Verify::kShapesOnly);
  const Dataset data = written.dataset();
  warn_of_gaps(data.labels);
  if (as_json) {
    const auto [train, validation, test] = data.split_sizes();
    const json result = {{"name", data.name},
                         {"format", reader.name()},
                         {"nodes", data.num_nodes()},
                         {"edges", data.graph.num_edges()},
                         {"directed", data.graph.directed()},
                         {"weighted", data.graph.weighted()},
                         {"features", written.meta().at("features")},
                         {"labels", written.meta().at("labels")},
                         {"split", {{"train", train}, {"validation", validation}, {"test", test}}},
                         {"training", {{"nodes", train}, {"edges", data.num_training_edges()}}},
                         {"graphs", data.num_graphs()},
                         {"entries", report.counts.entries},
                         {"duplicates", report.counts.duplicates},
                         {"self_loops", report.counts.self_loops},
                         {"one_directional", report.counts.one_directional},
                         {"notes", written.extra().at("import").at("lines")},
                         {"content_hash", data.content_hash},
                         {"bytes", written.bytes_on_disk()},
                         {"seconds", seconds},
                         {"peak_memory", memory_figures().peak_rss}};
    fmt::print("{}\n", to_text(result, 2));
    return;
  }
  fmt::print("{} ({} format)\n", data.name, reader.name());
  fmt::print("  nodes      {}\n", format_count(data.num_nodes()));
  fmt::print("  edges      {}{}{}\n", format_count(data.graph.num_edges()), data.graph.directed() ? ", directed" : "",
             data.graph.weighted() ? ", weighted" : "");
  fmt::print("  features   {}\n", describe_features(data.features));
  if (data.labels.regression())
    fmt::print("  labels     numbers (regression)\n");
  else if (data.labels.present())
    fmt::print("  classes    {}{}\n", format_count(data.labels.num_classes()),
               data.labels.multi_label() ? " (multi-label)" : "");
  else
    fmt::print("  classes    none\n");
  fmt::print("  split      {}\n", describe_split(data));
  if (const uint64_t train = data.split_sizes()[0]; train > 0)
    fmt::print("  training   {} between them\n",
               describe_share(train, data.num_nodes(), data.num_training_edges(), data.graph.num_edges()));
  if (data.num_graphs() > 1) fmt::print("  graphs     {}\n", format_count(data.num_graphs()));
  for (const std::string& line : report.lines) fmt::print("  - {}\n", line);
  log::note("{}: {} written in {}", store.string(), format_bytes(written.bytes_on_disk()), format_seconds(seconds));
}

void add_import_command(CLI::App& program) {
  struct ImportCommand {
    CommonOptions common;
    ImportRequest request;
    std::string source, store;
    OptionList options;

    void run() const {
      apply_common_options(common);
      const Timer timer;
      const auto [reader, report] = import_store(source, store, request);
      print_import(store, common.json, reader, report, timer.seconds());
    }
  };
  auto state = std::make_shared<ImportCommand>();
  CLI::App* command = program.add_subcommand("import", "Import a graph from files into a graph store");
  command->add_option("source", state->source, "folder or file to read")->required();
  command->add_option("store", state->store, "graph store to write")->required();
  state->request.list_options(state->options);
  state->common.list_options(state->options);
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
