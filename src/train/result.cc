#include "train/result.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "graph/feature_encoding.h"
#include "train/ranking.h"
#include "train/selection.h"

namespace cgcn {
namespace {

// Millions of classes would make a file of gigabytes: beyond so many, those with the most nodes, in their order.
std::vector<uint32_t> listed_classes(const Tally& tally) {
  constexpr size_t kMostListed = 10'000;
  std::vector<uint32_t> classes(tally.num_classes());
  std::iota(classes.begin(), classes.end(), 0u);
  if (classes.size() <= kMostListed) return classes;
  std::nth_element(classes.begin(), classes.begin() + kMostListed, classes.end(), [&](uint32_t a, uint32_t b) {
    const uint64_t more = tally.classes()[a].support(), less = tally.classes()[b].support();
    return more != less ? more > less : a < b;
  });
  classes.resize(kMostListed);
  std::sort(classes.begin(), classes.end());
  return classes;
}

}  // namespace

nlohmann::json describe_tally(const Tally& tally, const std::function<std::string(uint32_t)>& class_name) {
  nlohmann::json json = tally.scores();
  if (tally.regression()) return json;
  const uint32_t classes = tally.num_classes();
  if (json.contains("roc_auc") && !tally.multi_label()) json["positive_class"] = class_name(kPositiveClass);
  json["class_count"] = classes;
  json["classes"] = nlohmann::json::array();
  for (const uint32_t c : listed_classes(tally)) {
    const ClassCounts& counts = tally.classes()[c];
    json["classes"].push_back({{"class", class_name(c)},
                               {"nodes", counts.support()},
                               {"precision", counts.precision()},
                               {"recall", counts.recall()},
                               {"f1", counts.f1()}});
  }
  for (size_t row = 0; row * classes < tally.confusion().size(); ++row) {
    const auto begin = tally.confusion().begin() + static_cast<std::ptrdiff_t>(row * classes);
    json["confusion"].push_back(std::vector<uint64_t>(begin, begin + classes));
  }
  return json;
}

std::string describe_never_predicted(const TrainingSummary& summary, const Dataset& data) {
  if (data.labels.regression()) return {};
  const Evaluation& evaluation = *summary.evaluation;
  std::vector<std::string> unlearnt, unseen;  // … of which the latter has no training node
  bool small = false;  // whether one of those unlearnt has clearly fewer training nodes than others
  uint64_t all_trained = 0;
  for (const ClassCounts& counts : evaluation.train.classes()) all_trained += counts.support();
  for (uint32_t c = 0; c < data.labels.num_classes(); ++c) {
    uint64_t having = 0, predicted = 0;
    for (const Tally* tally : {&evaluation.validation, &evaluation.test}) {
      const ClassCounts& counts = tally->classes()[c];
      having += counts.support();
      predicted += counts.true_positives + counts.false_positives;
    }
    if (having == 0 || predicted > 0) continue;
    const uint64_t trained = evaluation.train.classes()[c].support();
    (trained > 0 ? unlearnt : unseen).push_back(data.class_name(c));
    small = small || (trained > 0 && 5 * trained * data.labels.num_classes() < 4 * all_trained);
  }
  const auto say = [](const std::vector<std::string>& names, const std::string& hint) {
    return names.empty() ? std::string()
           : names.size() == 1
               ? fmt::format("class {} is never predicted{}", names[0], hint)
               : fmt::format("{} classes are never predicted ({}){}", names.size(), list_some(names), hint);
  };
  const std::string first = say(unlearnt, summary.weighted_classes || !small ? "" : ": try --class-weights balanced"),
                    second = say(unseen, ": no training node has it");
  return first + (first.empty() || second.empty() ? "" : "; ") + second;
}

nlohmann::json describe_smoothing(const SmoothingChoice& choice) {
  return {{"correct", choice.correct},
          {"smooth", choice.smooth},
          {"score", selection_name(choice.by)},
          {"validation_before", shown_score(choice.before, choice.by)},
          {"validation_after", shown_score(choice.after, choice.by)},
          {"test_before", choice.test_before},
          {"temperature", choice.temperature}};
}

nlohmann::json describe_epoch(const EpochRecord& record) {
  nlohmann::json json = {{"epoch", record.epoch},
                         {"loss", record.loss},
                         {"lr", record.learning_rate},
                         {"seconds", record.seconds},
                         {"embeddings", record.work.embeddings},
                         {"utilisation", record.work.utilisation()},
                         {"preparing_seconds", record.work.preparing_seconds}};
  if (record.validation) {
    json["validation"] = *record.validation;
    json["validation_seconds"] = record.validation_seconds;
  }
  json["batch_seconds"] = record.batch_seconds;
  json["memory"] = {
      {"resident", record.memory.rss}, {"anonymous", record.memory.anonymous}, {"peak", record.memory.peak_rss}};
  return json;
}

nlohmann::json describe_result(const TrainingSummary& summary, const Dataset& data) {
  const Evaluation& evaluation = *summary.evaluation;
  const auto of_role = [&](const Tally& tally) {
    return describe_tally(tally, [&](uint32_t c) { return data.class_name(c); });
  };
  nlohmann::json stages = nlohmann::json::array();
  for (const auto& [stage, seconds] : summary.stages.list()) stages.push_back({{"stage", stage}, {"seconds", seconds}});
  nlohmann::json ranks = nlohmann::json::array();
  for (size_t r = 0; r < summary.ranks.size(); ++r) {
    const RankFigures& rank = summary.ranks[r];
    ranks.push_back({{"rank", r},
                     {"host", summary.hosts[r]},
                     {"compute_seconds", rank.compute},
                     {"waiting_seconds", rank.waiting},
                     {"communication_seconds", rank.moving},
                     {"bytes_sent", rank.bytes_sent},
                     {"peak_memory_bytes", rank.peak_memory}});
  }
  const uint32_t epochs = std::max(1u, summary.epochs);
  nlohmann::json result = {{"run", summary.run.string()},
                           {"train", of_role(evaluation.train)},
                           {"validation", of_role(evaluation.validation)},
                           {"test", of_role(evaluation.test)},
                           {"epochs", summary.epochs},
                           {"kept_epoch", summary.kept_epoch},
                           {"stopped_early", summary.stopped_early},
                           {"multi_label", data.labels.multi_label()},
                           {"regression", data.labels.regression()},
                           {"parts", summary.clusters},
                           {"per_batch", summary.per_batch},
                           {"batches_per_step", summary.batches_per_step},
                           {"ranks", ranks},
                           {"weights", summary.weights},
                           {"seconds_per_epoch", summary.train_seconds / epochs},
                           {"train_seconds", summary.train_seconds},
                           {"total_seconds", summary.total_seconds},
                           {"evaluation_seconds", evaluation.seconds},
                           {"stages", stages},
                           {"embeddings_per_epoch", summary.work.embeddings / epochs},
                           {"utilisation", summary.work.utilisation()},
                           {"preparing_seconds_per_epoch", summary.work.preparing_seconds / epochs},
                           {"peak_memory_bytes", summary.peak_memory},
                           {"training_peak_bytes", summary.training_peak},
                           {"graph_bytes", summary.graph_bytes},
                           {"features_bytes", summary.features_bytes},
                           {"history_bytes", summary.history_bytes},
                           {"model_bytes", summary.model_bytes},
                           {"workspace_bytes", summary.workspace_bytes}};
  if (evaluation.rule.temperature) result["temperature"] = *evaluation.rule.temperature;
  if (const std::string text = describe_never_predicted(summary, data); !text.empty()) result["never_predicted"] = text;
  if (evaluation.smoothing) result["smoothing"] = describe_smoothing(*evaluation.smoothing);
  return result;
}

}  // namespace cgcn
