// clustergcn report: one HTML file that shows a run, or compares several.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/command.h"
#include "common/error.h"
#include "common/json.h"
#include "common/memory.h"
#include "report/page.h"
#include "report/run_record.h"
#include "train/seed_runs.h"

namespace cgcn {
namespace {

struct ReportCommand {
  CommonOptions common;
  OptionList list;
  std::vector<std::string> runs;
  std::string output = "report.html";

  // A page of before is replaced; a device or a pipe is written to. Anything else may be dear to someone.
  void require_replaceable_page() const {
    std::error_code ignored;
    if (fs::is_directory(output, ignored)) throw Error("is a directory", output, "--output FILE.html");
    if (!fs::is_regular_file(output, ignored) || fs::is_empty(output, ignored)) return;
    const MappedFile file{fs::path(output)};
    std::string begin(file.text().substr(0, 100));
    std::transform(begin.begin(), begin.end(), begin.begin(), [](unsigned char c) { return std::tolower(c); });
    if (begin.find("<!doctype html") == std::string::npos && begin.find("<html") == std::string::npos)
      throw Error("exists and is not an HTML page", output, "--output with another name");
  }

  void run_command() {
    apply_common_options(common);
    require_replaceable_page();
    std::vector<fs::path> folders;
    for (const std::string& run : runs) folders.push_back(best_of_seeds(run));
    const nlohmann::json data = read_runs(folders);
    const std::string page = make_page(data, /*live=*/false);
    write_file_atomically(output, page);
    if (common.json)
      fmt::print("{}\n", to_text(data, 2));
    else
      fmt::print("{}: {} {}, {}\n", output, runs.size(), runs.size() == 1 ? "run" : "runs", format_bytes(page.size()));
  }
};

}  // namespace

void add_report_command(CLI::App& program) {
  auto state = std::make_shared<ReportCommand>();
  CLI::App* command = program.add_subcommand("report", "Write an HTML report of one run or several");
  command->add_option("runs", state->runs, "run folders, finished or not")->required();
  command->add_option("-o,--output", state->output, "output file [report.html]")->type_name("FILE")->group("Report");
  state->common.list_options(state->list);
  bind_options(*command, state->list);
  command->callback([state] { state->run_command(); });
}

}  // namespace cgcn
