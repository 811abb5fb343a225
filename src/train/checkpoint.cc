#include "train/checkpoint.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "kernels/adam_step.h"
#include "train/run_directory.h"
#include "train/safetensors.h"

namespace cgcn {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ModelShape, input_columns, sparse_input, num_classes, multi_label,
                                                regression)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TargetScaling, mean, scale)

namespace {

constexpr int kVersion = 4;
constexpr int kWithoutChecksums = 3;  // the last such version; still read
constexpr const char* kMetadataKey = "clustergcn";

std::vector<uint64_t> shape_of(const Parameter& parameter) {
  if (parameter.rows == 1) return {parameter.columns};
  return {parameter.rows, parameter.columns};
}

std::string history_name(uint32_t layer) { return fmt::format("layer{}.history", layer); }

template <class T>
std::span<T> values_of(std::span<T> flat, const Parameter& parameter) {
  return flat.subspan(parameter.offset, parameter.size());
}

void check_shape(const SafetensorsFile& file, const std::string& name, const Parameter& parameter) {
  if (file.shape(name) != shape_of(parameter))
    throw Error(fmt::format("'{}' has the shape {}, expected {}", name, fmt::join(file.shape(name), " × "),
                            fmt::join(shape_of(parameter), " × ")),
                file.path().string());
}

void copy_finite(const SafetensorsFile& file, const std::string& name, std::span<float> out) {
  file.copy<float>(name, out);
  if (!kernels::all_finite(out.size(), out.data()))
    throw Error(fmt::format("'{}' has a value that is not a number, or infinite", name), file.path().string(),
                "take another checkpoint of the run, or train again with another --run");
}

// Whether another program wrote the file again: it keeps the description and has no checksums. If they are only under
// a damaged name, that name is here.
bool is_written_anew(const SafetensorsFile& file) {
  return std::all_of(file.metadata().begin(), file.metadata().end(),
                     [](const auto& entry) { return entry.first == kMetadataKey || entry.first == "format"; });
}

void look_for_checksums(const SafetensorsFile& file, bool required) {
  if (file.has_checksums()) return;
  if (required)
    throw Error("has no checksums: the file is damaged, or another program wrote it", file.path().string(),
                "restore it from a copy, or train again with another --run");
  log::note("{}: has no checksums, so damage to it cannot be seen", file.path().string());
}

void load_rule(const SafetensorsFile& tensors, SavedModel& saved) {
  OutputRule& rule = saved.rule;
  rule.target = saved.target;
  if (!std::isfinite(rule.target.mean) || !std::isfinite(rule.target.scale) || rule.target.scale <= 0)
    throw Error("the scale of its numbers is damaged", tensors.path().string());
  if (rule.temperature && !(std::isfinite(*rule.temperature) && *rule.temperature > 0))
    throw Error(fmt::format("its temperature is {}", *rule.temperature), tensors.path().string());
  if (!tensors.contains("output.thresholds")) return;
  const size_t size = tensors.values<float>("output.thresholds").size();
  if (size != saved.shape.num_classes)
    throw Error(fmt::format("has thresholds for {} classes of {}", size, saved.shape.num_classes),
                tensors.path().string());
  rule.thresholds.resize(size);
  copy_finite(tensors, "output.thresholds", rule.thresholds);
}

// What version 3 called its fields.
nlohmann::json state_of(const nlohmann::json& description, int version) {
  const nlohmann::json& written = description.at("state");
  nlohmann::json state = written;
  if (version == kWithoutChecksums) state.update({{"standing", written}, {"regular", written}});
  return state;
}

}  // namespace

void save_model(const fs::path& file, const ModelOrigin& origin, const WeightsOf& weights, const TrainingState& state,
                const std::string& optimiser_file, const OutputRule& rule) {
  const Model& model = weights.model;
  const ColumnScaling& scaling = origin.scaling;
  SafetensorsWriter writer;
  for (const Parameter& parameter : model.parameters())
    writer.add<float>(parameter.name, shape_of(parameter), values_of(weights.values, parameter));
  if (!scaling.empty()) {
    writer.add<float>("input.mean", {scaling.mean.size()}, scaling.mean);
    writer.add<float>("input.scale", {scaling.scale.size()}, scaling.scale);
  }
  if (!rule.thresholds.empty()) writer.add<float>("output.thresholds", {rule.thresholds.size()}, rule.thresholds);
  RunOptions options = origin.options;
  OptionList list;
  options.list_options(list);
  nlohmann::json description = {{"version", kVersion},    {"options", list.to_json()},
                                {"shape", model.shape()}, {"trained_on", origin.trained_on},
                                {"state", state},         {"optimiser", optimiser_file}};
  if (model.shape().regression) description["target"] = origin.target;
  if (rule.temperature) description["temperature"] = *rule.temperature;
  writer.set_metadata({{"format", "pt"}, {kMetadataKey, to_text(description)}});
  writer.write(file);
}

SavedModel load_model(const fs::path& file, const PrecisionOptions& precision) {
  const SafetensorsFile tensors(file);
  SavedModel saved;
  try {
    const nlohmann::json description = nlohmann::json::parse(tensors.metadata(kMetadataKey));
    const int version = description.at("version");
    if (version != kVersion && version != kWithoutChecksums)
      throw Error(fmt::format("is of version {}, this program reads version {}", version, kVersion), file.string(),
                  "train again with another --run, or use the program that wrote it");
    saved.has_checksums = version != kWithoutChecksums;
    look_for_checksums(tensors, saved.has_checksums && !is_written_anew(tensors));
    OptionList list;
    saved.options.list_options(list);
    list.from_json(description.at("options"), file.string());
    saved.options.model.precision = precision.of(saved.options.model.precision);
    saved.shape = description.at("shape").get<ModelShape>();
    saved.trained_on = description.at("trained_on").get<TrainedOn>();
    saved.state = state_of(description, version).get<TrainingState>();
    saved.optimiser_file = description.at("optimiser").get<std::string>();
    if (saved.shape.regression) saved.target = description.at("target").get<TargetScaling>();
    if (description.contains("temperature")) saved.rule.temperature = description["temperature"].get<double>();
  } catch (const nlohmann::json::exception& problem) {
    throw Error(fmt::format("its description is damaged: {}", problem.what()), file.string());
  }
  if (tensors.contains("input.mean")) {
    const auto mean = tensors.values<float>("input.mean"), scale = tensors.values<float>("input.scale");
    if (mean.size() != saved.shape.input_columns || scale.size() != mean.size())
      throw Error("the scaling of its input has another width than its features", file.string());
    saved.scaling.mean.resize(mean.size());
    saved.scaling.scale.resize(scale.size());
    copy_finite(tensors, "input.mean", saved.scaling.mean);
    copy_finite(tensors, "input.scale", saved.scaling.scale);
  }
  load_rule(tensors, saved);
  saved.scaling.rows = saved.options.train.normalise_rows;
  // Nothing is allocated at the description's word: the file has a tensor for every weight.
  const Model planned = Model::planned(saved.options.model, saved.shape);
  const auto is_absent = [&](const Parameter& parameter) {  // models of one layer had no bias before: one of 0
    return saved.options.model.is_linear() && parameter.name.ends_with(".bias") && !tensors.contains(parameter.name);
  };
  for (const Parameter& parameter : planned.parameters())
    if (!is_absent(parameter)) check_shape(tensors, parameter.name, parameter);
  saved.model.emplace(saved.options.model, saved.shape, saved.options.train.seed);
  for (const Parameter& parameter : saved.model->parameters()) {
    if (is_absent(parameter)) continue;
    copy_finite(tensors, parameter.name, values_of(saved.model->values(), parameter));
  }
  return saved;
}

void save_optimiser(const fs::path& file, const Model& model, Optimiser& optimiser, const EmbeddingHistory* history) {
  SafetensorsWriter writer;
  const uint64_t steps = optimiser.steps();
  writer.add<uint64_t>("steps", {1}, {&steps, 1});
  for (const Parameter& parameter : model.parameters())
    for (const Optimiser::State& state : optimiser.state())
      writer.add<float>(parameter.name + "." + state.name, shape_of(parameter), values_of(state.values, parameter));
  for (uint32_t l = 1; history != nullptr && l <= history->num_layers(); ++l)
    writer.add<float>(history_name(l), {history->num_nodes(), model.layer_width(l)}, history->values(l));
  writer.write(file);
}

void load_optimiser(const fs::path& run, const SavedModel& saved, const Model& model, Optimiser& optimiser,
                    EmbeddingHistory* history) {
  const SafetensorsFile tensors(run / saved.optimiser_file);
  look_for_checksums(tensors, saved.has_checksums);
  uint64_t steps = 0;
  tensors.copy<uint64_t>("steps", {&steps, 1});
  if (steps != saved.state.step)
    throw Error(fmt::format("is of step {}, and the checkpoint that names it is of step {}", steps, saved.state.step),
                tensors.path().string(), "restore both from a copy, or train again with another --run");
  optimiser.set_steps(steps);
  for (const Parameter& parameter : model.parameters())
    for (const Optimiser::State& state : optimiser.state())
      copy_finite(tensors, parameter.name + "." + state.name, values_of(state.values, parameter));
  for (uint32_t l = 1; history != nullptr && l <= history->num_layers(); ++l)
    copy_finite(tensors, history_name(l), history->values(l));
}

fs::path kept_checkpoint(const fs::path& run) {
  std::error_code problem;
  if (fs::is_regular_file(run, problem)) return run;
  const RunFiles files(run);
  if (fs::is_regular_file(files.last(), problem)) {
    const SavedModel last = load_model(files.last());
    if (last.options.train.keep == KeptModel::kLast) return files.last();
    if (last.state.standing.best_epoch > 0 && !fs::is_regular_file(files.best(), problem))
      throw Error(fmt::format("is missing: the model of epoch {}, the best of the run", last.state.standing.best_epoch),
                  files.best().string(),
                  fmt::format("restore it from a copy, or name {} to use the last model", files.last().string()));
  }
  for (const fs::path& file : {files.best(), files.last()})
    if (fs::is_regular_file(file, problem)) return file;
  throw Error(fs::is_directory(run, problem) ? "has no checkpoint" : "no such run", run.string(),
              "give the run folder that `clustergcn train` printed");
}

}  // namespace cgcn
