// clustergcn download: a public data set from its publisher into a graph store.
#include "download/download.h"

#include "cli/command.h"
#include "cli/import_command.h"

namespace cgcn {
namespace {

struct DownloadCommand {
  ImportCommand import;
  std::string name, base_url, folder;
  bool keep = false;
  OptionList options;

  void list_options() {
    options.begin_group("Download");
    options.add("folder", &folder, "where files are kept while they arrive; otherwise STORE.download").value("FOLDER");
    options.add("keep", &keep, "keep the downloaded files after the import");
    options.add("base-url", &base_url, "fetch from here: a mirror that has the publisher's file names").value("URL");
    import.list_options(options);
  }

  void run() {
    apply_common_options(import.common);
    const DownloadSource& source = find_download(name);
    std::error_code error;
    if (!import.request.force && fs::exists(import.store, error))  // before a gigabyte is fetched, not after
      throw Error("already exists", import.store, "another name, or --force to replace it");
    const fs::path kept = folder.empty() ? fs::path(import.store + ".download") : fs::path(folder);
    import.source = download(source, base_url, kept).string();
    if (import.request.import.format == "auto") import.request.import.format = source.format;
    if (import.request.name.empty()) import.request.name = source.name;
    import.run();
    if (!keep) remove_downloaded(source, kept);
  }

  // Only what came from the download; a folder that the user named may hold other things.
  static void remove_downloaded(const DownloadSource& source, const fs::path& folder) {
    std::error_code ignored;
    for (const RemoteFile& file : source.files) fs::remove(folder / file.name, ignored);
    for (const std::string& member : source.members)  // the file, then the folders above it that are empty by now
      for (fs::path path = member; !path.empty(); path = path.parent_path()) fs::remove(folder / path, ignored);
    fs::remove(folder, ignored);  // if empty
  }
};

}  // namespace

void add_download_command(CLI::App& program) {
  auto state = std::make_shared<DownloadCommand>();
  std::string names;
  for (const DownloadSource& source : download_sources()) names += (names.empty() ? "" : ", ") + source.name;
  CLI::App* command = program.add_subcommand("download", "Fetch a public data set into a graph store: " + names);
  command->add_option("dataset", state->name, "the data set: " + names)->required();
  command->add_option("store", state->import.store, "the graph store to write")->required();
  state->list_options();
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
