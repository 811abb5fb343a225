// clustergcn generate: a synthetic graph, of the shape of one of the paper's data sets or of any size.
#include "generate/generate.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/progress.h"
#include "common/timer.h"

namespace cgcn {
namespace {

struct GenerateCommand {
  CLI::App* command = nullptr;
  CommonOptions common;
  MemoryOptions memory;
  GenerateOptions generate;
  std::string store;
  bool force = false;
  OptionList options;

  void run() {
    apply_common_options(common);
    const std::vector<std::string> notes = note_unused_options(*command, options);
    const Timer timer;
    generate_store(store, generate, force ? StagedDirectory::Existing::kReplace : StagedDirectory::Existing::kRefuse,
                   memory.budget());
    const double seconds = timer.seconds();
    const uint64_t peak = memory_figures().peak_rss;
    const Store written(store, Verify::kShapesOnly);
    const nlohmann::json& meta = written.meta();
    if (common.json) {
      const nlohmann::json result{{"store", store},
                                  {"name", meta.at("name")},
                                  {"nodes", meta.at("nodes")},
                                  {"edges", meta.at("edges")},
                                  {"features", meta.at("features")},
                                  {"labels", meta.at("labels")},
                                  {"content_hash", meta.at("content_hash")},
                                  {"bytes", written.bytes_on_disk()},
                                  {"seconds", seconds},
                                  {"peak_rss", peak},
                                  {"notes", notes}};
      fmt::print("{}\n", result.dump(2));
      return;
    }
    fmt::print("{}: {} nodes, {} edges, {} on disk ({}, peak memory {})\n", store,
               format_count(meta.at("nodes").get<uint64_t>()), format_count(meta.at("edges").get<uint64_t>()),
               format_bytes(written.bytes_on_disk()), format_seconds(seconds), format_bytes(peak));
  }
};

}  // namespace

void add_generate_command(CLI::App& program) {
  auto state = std::make_shared<GenerateCommand>();
  CLI::App* command = program.add_subcommand("generate", "Generate a synthetic graph");
  state->command = command;
  command->add_option("store", state->store, "graph store to write")->required();
  state->generate.list_options(state->options);
  state->options.begin_group("Output");
  state->options.add("force", &state->force, "replace the store if it exists");
  state->memory.list_options(state->options);
  state->common.list_options(state->options);
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
