// clustergcn info: what a person wants to know of a graph before training.
#include <fmt/format.h>

#include "cli/command.h"
#include "common/progress.h"
#include "graph/store.h"

namespace cgcn {
namespace {

struct InfoCommand {
  CommonOptions common;
  std::string store;
  OptionList options;

  void run() {
    apply_common_options(common);
    const Dataset data = open_dataset(store);
    fmt::print("{}: {} nodes, {} edges\n", data.name, format_count(data.num_nodes()), format_count(data.graph.num_edges()));
  }
};

}  // namespace

void add_info_command(CLI::App& program) {
  auto state = std::make_shared<InfoCommand>();
  CLI::App* command = program.add_subcommand("info", "Describe a graph store");
  command->add_option("store", state->store, "the graph store")->required();
  state->common.list_options(state->options);
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
