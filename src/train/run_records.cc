#include "train/run_records.h"

#include <algorithm>

#include "common/json.h"
#include "partition/link_picture.h"
#include "train/run_checkpoints.h"

namespace cgcn {
namespace {

constexpr uint64_t kLongestEpoch = 1000;               // bytes of a line of metrics.jsonl
constexpr uint64_t kLongestTexts = uint64_t{8} << 20;  // all other texts together, with scores of ten thousand classes

void write_json(const fs::path& file, const nlohmann::json& json, int indent = -1) {
  write_file_atomically(file, to_text(json, indent) + "\n");
}

}  // namespace

void record_run(const RunFiles& files, const TrainingPlan& plan, const TrainedOn& trained_on) {
  nlohmann::json environment = describe_environment();
  environment["store"] = trained_on;
  if (plan.options.memory.given()) environment["memory_budget_bytes"] = plan.budget;
  write_json(files.environment(), environment, 2);
  std::error_code ignored;
  fs::remove(files.result(), ignored);
  fs::remove(files.embeddings(), ignored);
  RunOptions options = plan.options;
  OptionList list;
  options.list_options(list);
  write_file_atomically(files.config(), list.to_toml());  // last: it is what makes the folder a run
}

void record_clusters(const RunFiles& files, const TrainingPlan& plan, const TrainingInput& input) {
  std::error_code ignored;
  const RunOptions& options = plan.options;
  if (!options.method.uses_clusters() || fs::exists(files.clusters(), ignored)) return;
  const uint32_t per_batch = options.train.clusters_per_batch(input.layout.num_clusters());
  write_json(files.clusters(), describe_clusters(input.layout, per_batch, options.train.seed));
}

void record_embeddings(const RunFiles& files, const RowSample& hidden, const Dataset& data) {
  if (hidden.columns > 0) write_json(files.embeddings(), describe_embeddings(hidden, data));
}

void record_result(const RunFiles& files, const TrainingSummary& summary, const Dataset& data) {
  write_json(files.result(), describe_result(summary, data));
}

uint64_t planned_run_bytes(const RunOptions& options, const Dataset& data) {
  const Model model = Model::planned(options.model, shape_of(data));
  return RunCheckpoints::planned_bytes(options, model, data.num_nodes()) + options.train.epochs * kLongestEpoch +
         kLongestTexts;
}

StageTimes recorded_stages(const RunFiles& files, const RunFigures& figures, double train_seconds,
                           double total_seconds) {
  double waited = 0, validation = 0;
  for (const nlohmann::json& record : read_metrics(files.metrics())) {
    waited += record.value("batch_seconds", 0.0);
    validation += record.value("validation_seconds", 0.0);
  }
  StageTimes stages = figures.stages();
  stages.add(Stage::kWaiting, waited);
  stages.add(Stage::kSteps, std::max(0.0, train_seconds - waited));
  stages.add(Stage::kValidation, validation);
  stages.add(Stage::kOther, std::max(0.0, total_seconds - stages.total()));
  return stages;
}

}  // namespace cgcn
