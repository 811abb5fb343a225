// clustergcn download: a public data set from its publisher into a graph store.
#include "download/download.h"

#include "cli/command.h"
#include "cli/import_command.h"
#include "common/timer.h"
#include "download/download_store.h"

namespace cgcn {
namespace {

struct DownloadCommand {
  CommonOptions common;
  DownloadRequest request;
  std::string dataset, store;
  OptionList options;

  void run() {
    apply_common_options(common);
    const Timer timer;
    const auto [reader, report] = download_store(dataset, store, request);
    print_import(store, common.json, reader, report, timer.seconds());
  }
};

}  // namespace

void add_download_command(CLI::App& program) {
  auto state = std::make_shared<DownloadCommand>();
  std::string names;
  for (const DownloadSource& source : download_sources()) names += (names.empty() ? "" : ", ") + source.name;
  CLI::App* command = program.add_subcommand("download", "Download a public data set into a graph store: " + names);
  command->add_option("dataset", state->dataset, "the data set: " + names)->required();
  command->add_option("store", state->store, "graph store to write")->required();
  state->request.list_options(state->options);
  state->common.list_options(state->options);
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
