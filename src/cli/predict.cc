// clustergcn predict: classes, probabilities or embeddings, in the user's ids and order.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "common/progress.h"
#include "engine/prediction.h"
#include "process/process_group.h"
#include "train/seed_runs.h"

namespace cgcn {
namespace {

struct PredictCommand {
  CLI::App* command = nullptr;
  dist::GroupOptions group_options;
  CommonOptions common;
  MemoryOptions memory;
  PredictionRequest request;
  PrecisionOptions precision;
  std::string run, store, output;
  OptionList list;
};

// To stdout. A reader that has seen enough (head) ends the program without a word.
void print_or_stop(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  if (errno == EPIPE) std::_Exit(0);
  throw Error(fmt::format("cannot write: {}", std::strerror(errno)), "standard output");
}

void run_predict(const PredictCommand& state, dist::Group& group) {
  note_unused_options(*state.command, state.list);
  std::optional<Predictor> opened;
  group.together([&] {
    require_writable(state.request, state.output);
    if (state.common.json && state.output.empty()) throw Error("describes a written file", "--json", "--output FILE");
    opened.emplace(best_of_seeds(state.run), state.store, state.memory, group, state.precision);
  });
  opened->require_same_on_all_ranks();
  const Prediction prediction(*opened, state.request);
  if (!group.is_first()) return;
  if (state.output.empty()) return prediction.write_csv(print_or_stop);
  write_prediction(prediction, state.output);
  const uint32_t columns = prediction.columns(fs::path(state.output).extension() == ".npy");
  if (state.common.json)
    fmt::print("{}\n", to_text({{"output", state.output}, {"nodes", prediction.nodes()}, {"columns", columns}}));
  else
    log::note("{}: {} nodes", state.output, format_count(prediction.nodes()));
}

}  // namespace

void add_predict_command(CLI::App& program) {
  auto state = std::make_shared<PredictCommand>();
  CLI::App* command = program.add_subcommand("predict", "Predict classes, probabilities or embeddings");
  state->command = command;
  command->add_option("run", state->run, "run folder, a checkpoint in it, or a folder of train --seeds: its best run")
      ->required();
  command->add_option("store", state->store, "graph store; default: the one it was trained on");
  state->request.list_options(state->list);
  state->precision.list_options(state->list);
  state->list.add("output", &state->output, "output file, .npy or .csv; default: CSV to the terminal").value("FILE");
  state->memory.list_options(state->list);
  state->group_options.list_options(state->list);
  state->common.list_options(state->list);
  bind_options(*command, state->list);
  command->callback([state] {
    apply_common_options(state->common);
    run_in_group(state->group_options, state->common.threads, [&](dist::Group& group) { run_predict(*state, group); });
  });
}

}  // namespace cgcn
