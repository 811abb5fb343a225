// clustergcn partition: clusters for a store's nodes, the layout in their order, A·X, and how good they are.
#include "engine/partition.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "common/json.h"
#include "common/progress.h"

namespace cgcn {
namespace {

using nlohmann::json;

struct PartitionCommand {
  CLI::App* command = nullptr;
  CommonOptions common;
  PartitionRequest request;
  std::string store;
  OptionList options;
};

// What the multilevel partitioner did, finest level first.
void print_levels(const json& record) {
  if (!record.contains("levels")) return;
  fmt::print("\n  {:>5} {:>14} {:>16} {:>10} {:>10} {:>10}\n", "level", "nodes", "edges", "coarsen", "METIS", "refine");
  size_t number = 0;
  for (const json& level : record.at("levels")) {
    const auto seconds = [&](const char* what) {
      const double value = level.at(what).get<double>();
      return value > 0 ? format_seconds(value) : std::string();
    };
    fmt::print("  {:>5} {:>14} {:>16} {:>10} {:>10} {:>10}\n", number++,
               format_count(level.at("nodes").get<uint64_t>()), format_count(level.at("entries").get<uint64_t>() / 2),
               seconds("coarsen_seconds"), seconds("partition_seconds"), seconds("refine_seconds"));
  }
}

void print_stages(const PartitionReport& report) {
  fmt::print("\n  {:30} {:>10} {:>12}\n", "stage", "time", "peak memory");
  for (const auto& stage : report.stages)
    fmt::print("  {:30} {:>10} {:>12}\n", name_of(stage.stage), format_seconds(stage.seconds),
               format_bytes(stage.peak_rss));
  print_levels(report.record());
  fmt::print("\n  {} on disk, {:.2f} × the store\n", format_bytes(report.bytes()),
             static_cast<double>(report.bytes()) / static_cast<double>(report.store_bytes));
}

void run_partition(const PartitionCommand& state) {
  apply_common_options(state.common);
  const std::vector<std::string> notes = note_unused_options(*state.command, state.options);
  const PartitionReport report = partition_store(state.store, state.request);
  if (state.common.json) {
    json result = report.to_json();
    result["notes"] = notes;
    fmt::print("{}\n", to_text(result, 2));
    return;
  }
  fmt::print("{}{}\n\n{}", report.name(), report.result.reused ? "  (already exists)" : "", report.quality.to_table());
  if (!state.common.quiet) print_stages(report);
}

}  // namespace

void add_partition_command(CLI::App& program) {
  auto state = std::make_shared<PartitionCommand>();
  CLI::App* command = program.add_subcommand("partition", "Partition a graph store into clusters");
  state->command = command;
  command->add_option("store", state->store, "the graph store")->required();
  state->request.list_options(state->options);
  state->common.list_options(state->options);
  bind_options(*command, state->options);
  command->callback([state] { run_partition(*state); });
}

}  // namespace cgcn
