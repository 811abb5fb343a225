// What train prints when it is done.
#include "cli/training_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "common/progress.h"
#include "train/ranking.h"
#include "train/selection.h"

namespace cgcn {

namespace {

// Where the time of the ranks' steps went, and the memory of each host.
void print_ranks(const TrainingSummary& summary) {
  double compute = 0, waiting = 0, moving = 0;
  std::map<std::string, uint64_t> hosts;
  for (size_t r = 0; r < summary.ranks.size(); ++r) {
    compute += summary.ranks[r].compute;
    waiting += summary.ranks[r].waiting;
    moving += summary.ranks[r].moving;
    hosts[summary.hosts[r]] += summary.ranks[r].peak_memory;
  }
  const double all = std::max(1e-9, compute + waiting + moving);
  std::vector<std::string> memory;
  for (const auto& [host, bytes] : hosts) memory.push_back(fmt::format("{} on {}", format_bytes(bytes), host));
  fmt::print(
      "Ranks  {}, steps of {} batches: {:.0f} % computing, {:.0f} % waiting for others, {:.0f} % communicating; {}\n",
      summary.ranks.size(), summary.batches_per_step, 100 * compute / all, 100 * waiting / all, 100 * moving / all,
      fmt::join(memory, ", "));
}

}  // namespace

void print_summary(const TrainingSummary& summary, const Dataset& data, bool has_report) {
  const auto [train, validation, test] = data.split_sizes();
  const Role tested = test > 0 ? Role::kTest : validation > 0 ? Role::kValidation : Role::kTrain;
  const Scores scores = summary.evaluation->of(tested).scores();
  const char* what = test > 0         ? "Test"
                     : validation > 0 ? "Validation (there are no test nodes)"
                                      : "Training (there are no other nodes)";
  if (scores.regression)
    fmt::print("{} R² {:.4f}  (MAE {}, RMSE {}, {} nodes)\n", what, scores.regression->r2,
               show_number(scores.regression->mae), show_number(scores.regression->rmse), format_count(scores.nodes));
  else
    fmt::print("{} F1 {:.2f} %  (macro F1 {:.2f} %{}, {} of {} nodes {})\n", what, 100 * scores.micro_f1,
               100 * scores.macro_f1,
               scores.roc_auc
                   ? fmt::format(", ROC-AUC {:.2f} %, average precision {:.2f} %{}", 100 * *scores.roc_auc,
                                 100 * *scores.average_precision,
                                 data.labels.multi_label() ? "" : " of class " + data.class_name(kPositiveClass))
                   : "",
               format_count(static_cast<uint64_t>(std::llround(scores.accuracy * static_cast<double>(scores.nodes)))),
               format_count(scores.nodes), data.labels.multi_label() ? "with every label right" : "right");
  if (validation == 0)
    fmt::print("Model  last epoch ({}): there are no validation nodes to choose by\n", summary.kept_epoch);
  else
    fmt::print("Model  epoch {} of {}{}, validation {}\n", summary.kept_epoch, summary.epochs,
               summary.stopped_early ? " (stopped early)" : "",
               show_selection(selection_score(summary.evaluation->validation.scores(), summary.selected_by),
                              summary.selected_by));
  if (const auto& smoothing = summary.evaluation->smoothing)
    fmt::print("Smooth {}{}\n", smoothing->text(),
               test > 0 && smoothing->chosen()
                   ? fmt::format("; test F1 without it {:.2f} %", 100 * smoothing->test_before)
                   : "");
  if (const std::string text = describe_never_predicted(summary, data); !text.empty()) fmt::print("Note   {}\n", text);
  const uint32_t epochs = std::max(1u, summary.epochs);
  const double an_epoch = summary.train_seconds / epochs;
  fmt::print("Time   {} per epoch, {} in total\n", an_epoch < 1e-3 ? "under 1 ms" : format_seconds(an_epoch),
             format_seconds(summary.total_seconds));
  std::string memory = fmt::format("{} peak", format_bytes(summary.peak_memory));
  if (summary.training_peak > 0) memory += fmt::format(", {} while training", format_bytes(summary.training_peak));
  const char* separator = " (";
  for (const auto& [name, bytes] : {std::pair("graph", summary.graph_bytes),
                                    {"features", summary.features_bytes},
                                    {"model", summary.model_bytes},
                                    {"history", summary.history_bytes},
                                    {"step", summary.workspace_bytes}}) {
    if (bytes == 0) continue;
    memory += fmt::format("{}{} {}", std::exchange(separator, ", "), name, format_bytes(bytes));
  }
  fmt::print("Memory {})\n", memory);
  if (!summary.ranks.empty()) print_ranks(summary);
  fmt::print("Run    {}\n", summary.run.string());
  if (has_report) fmt::print("Report {}\n", RunFiles(summary.run).report().string());
}

}  // namespace cgcn
