// clustergcn reproduce: the paper's tables and figures, with our figures and the paper's.
#include <fmt/format.h>

#include "cli/command.h"
#include "common/error.h"
#include "common/log.h"
#include "reproduce/runner.h"

namespace cgcn {
namespace {

struct ReproduceCommand {
  CommonOptions common;
  OptionList list, common_list;
  ReproduceOptions options;
  TableFormat format = TableFormat::kText;
  std::string name, data, output = "reproduction";

  void run() {
    apply_common_options(common);
    if (name.empty()) return list_experiments();
    const Experiment experiment = find_experiment(name);
    options.data = data;
    options.output = output;
    options.program = "/proc/self/exe";  // the program that runs now, even if its file was replaced
    options.version = fmt::format("{} {}", fs::file_size(options.program),
                                  fs::last_write_time(options.program).time_since_epoch().count());
    options.threads = common.threads;
    if (!data.empty() && !fs::is_directory(data)) throw Error("is not a folder with graphs", data);
    const ExperimentResult result = run_experiment(experiment, options);
    const fs::path file = options.output / fmt::format("{}-{}.md", experiment.name, scale_name(options.scale));
    write_file_atomically(file, show_tables(experiment, result, options, TableFormat::kMarkdown));
    const fs::path page = write_report(experiment, result, options);
    if (common.json) {
      fmt::print("{}\n", to_json(experiment, result).dump(2));
      return;
    }
    fmt::print("{}", show_tables(experiment, result, options, format));
    log::note("tables: {}", file.string());
    if (!page.empty()) log::note("curves: {}", page.string());
  }

 private:
  static void list_experiments() {
    for (const Experiment& experiment : all_experiments())
      fmt::print("{:22} {:12} {}\n", experiment.name, experiment.paper, experiment.title);
    fmt::print("\nTo run one: clustergcn reproduce NAME [--scale small|paper] [--data DIR]\n");
  }

  static nlohmann::json to_json(const Experiment& experiment, const ExperimentResult& result) {
    nlohmann::json cells = nlohmann::json::array();
    for (const CellResult& cell : result.cells) {
      nlohmann::json figures = nlohmann::json::object(), published = nlohmann::json::object();
      for (size_t f = 0; f < experiment.figures.size(); ++f) {
        figures[experiment.figures[f].label] = cell.figures[f];
        published[experiment.figures[f].label] = cell.cell.published[f];
      }
      cells.push_back({{"row", cell.cell.row},
                       {"column", cell.cell.column},
                       {"data", cell.data_kind()},
                       {"graph_size", cell.size},
                       {"figures", figures},
                       {"paper", published}});
    }
    return {{"experiment", experiment.name}, {"data", result.data_notes}, {"cells", cells}};
  }
};

}  // namespace

void add_reproduce_command(CLI::App& program) {
  auto state = std::make_shared<ReproduceCommand>();
  CLI::App& command = *program.add_subcommand("reproduce", "Reproduce the paper's tables and figures");
  command.add_option("name", state->name, "experiment; without it, all are listed");
  state->list.begin_group("Experiment");
  state->list.add_choice("scale", &state->options.scale,
                         {{"small", ReproduceScale::kSmall}, {"paper", ReproduceScale::kPaper}},
                         "small: minutes on smaller graphs; paper: the paper's sizes");
  state->list.add("data", &state->data, "folder with real graphs (DIR/ppi, DIR/reddit, ...); others are generated")
      .value("DIR");
  state->list.add("output", &state->output, "folder for results, runs and generated graphs").value("DIR");
  state->list.add_choice(
      "table", &state->format,
      {{"text", TableFormat::kText}, {"markdown", TableFormat::kMarkdown}, {"html", TableFormat::kHtml}},
      "format of the printed tables");
  state->common.list_options(state->common_list);
  bind_options(command, state->list);
  bind_options(command, state->common_list);
  command.callback([state] { state->run(); });
}

}  // namespace cgcn
