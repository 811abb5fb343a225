#include "report/run_record.h"

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>

#include "common/error.h"
#include "common/json.h"
#include "report/figures.h"
#include "train/run_directory.h"
#include "train/run_options.h"

namespace cgcn {
namespace {

using nlohmann::json;

constexpr const char* kHint = "the file was changed or damaged: train again, or restore it from a copy";

// Six digits are more than a chart shows, and make the page a third of the size.
json rounded(const json& value) {
  if (!value.is_number()) return nullptr;
  const double number = value.get<double>();
  if (!std::isfinite(number)) return nullptr;
  return value.is_number_integer() ? value : json(std::strtod(fmt::format("{:.6g}", number).c_str(), nullptr));
}

json read_json(const fs::path& file) {
  json read = parse_json(read_text_file(file));
  if (!read.is_object()) throw Error("is not a JSON object", file.string(), kHint);
  return read;
}

json read_if_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) ? read_json(file) : json();
}

// A column for every figure of metrics.jsonl, null if an epoch does not have it.
json read_curves(const fs::path& path) {
  json curves = json::object();
  for (const char* name : {"epoch", "seconds", "loss", "f1", "macro_f1", "r2", "validation_loss", "resident", "peak"})
    curves[name] = json::array();
  double seconds = 0, waiting = 0, validation_seconds = 0;
  for (const json& record : read_metrics(path)) {
    const auto figure = [](const json& object, const char* name) {
      return object.is_object() && object.contains(name) && object[name].is_number() ? object[name] : json();
    };
    const auto add_to = [&](double& sum, const char* name) {
      if (const json value = figure(record, name); value.is_number()) sum += value.get<double>();
    };
    add_to(seconds, "seconds");
    add_to(waiting, "batch_seconds");
    add_to(validation_seconds, "validation_seconds");
    const json validation = record.value("validation", json()), memory = record.value("memory", json());
    curves["epoch"].push_back(record["epoch"]);
    curves["seconds"].push_back(rounded(seconds));
    curves["loss"].push_back(rounded(figure(record, "loss")));
    curves["f1"].push_back(rounded(figure(validation, "micro_f1")));
    curves["macro_f1"].push_back(rounded(figure(validation, "macro_f1")));
    curves["r2"].push_back(rounded(figure(validation, "r2")));
    curves["validation_loss"].push_back(rounded(figure(validation, "loss")));
    curves["resident"].push_back(rounded(figure(memory, "resident")));
    curves["peak"].push_back(rounded(figure(memory, "peak")));
  }
  curves["stages"] = {{{"stage", "waiting for batches"}, {"seconds", rounded(waiting)}},
                      {{"stage", "steps"}, {"seconds", rounded(seconds - waiting)}},
                      {{"stage", "validation"}, {"seconds", rounded(validation_seconds)}}};
  return curves;
}

// The options of config.toml: those that are not at their default, and the command that sets just these.
void read_settings(const fs::path& file, const std::string& store, json& record) {
  RunOptions options;
  OptionList list;
  options.list_options(list);
  read_toml(file, list);
  std::string command = "clustergcn train " + shell_word(store) + " --recipe none";
  record["settings"] = json::array();
  for (const Option& option : list.all()) {
    if (option.is_default()) continue;
    record["settings"].push_back({{"name", option.name()},
                                  {"value", option.text()},
                                  {"default", option.default_text()},
                                  {"help", option.help()}});
    command += " " + option.command_line();
  }
  record["command"] = command;
  record["config"] = read_text_file(file);
  record["epochs_asked"] = options.train.epochs;
}

// What `read` reads from the file's values. One that is not there, or of another kind, is an Error with the file's
// name.
template <class Read>
auto from_file(const fs::path& file, const Read& read) {
  try {
    return read();
  } catch (const json::exception&) {
    throw Error("does not hold what a run writes", file.string(), kHint);
  }
}

void read_environment(const fs::path& file, json& record) {
  json environment = read_json(file);
  const json store = environment.value("store", json::object());
  record["graph"] = store.value("name", "");
  record["store"] = store.value("store", "");
  environment.erase("store");
  environment.erase("command");  // of the last session only; record["command"] makes the whole run
  record["environment"] = environment;
}

// Why `auto` chose a setting, next to it; and which networks it tried, in a sentence.
void read_choices(const json& chosen, json& record) {
  for (const json& choice : chosen.at("choices"))
    for (json& setting : record["settings"])
      if (setting["name"] == choice.at("option") && setting["value"] == choice.at("value"))
        setting["reason"] = choice.at("reason").get<std::string>();
  if (chosen.contains("trials")) record["trials"] = chosen.at("trials").at("text").get<std::string>();
}

void read_result(json result, json& record) {
  if (!result.value("regression", false)) record["classes"] = class_figures(result);
  for (const char* role : {"train", "validation", "test"})
    for (const char* large : {"classes", "confusion"}) result.at(role).erase(large);
  record["stages"] = result.at("stages");
  result.erase("stages");
  result.erase("run");
  record["result"] = result;
}

}  // namespace

json read_run(const fs::path& run) {
  std::error_code ignored;
  const RunFiles files(run);
  const fs::path config = files.config();
  if (!fs::is_regular_file(config, ignored)) {
    if (!fs::exists(run, ignored))
      throw Error("no such run", run.string(), "give the run folder that `clustergcn train` printed");
    throw Error("is not a run folder: it has no config.toml", run.string(),
                "give the run folder that `clustergcn train` printed");
  }
  json record = {{"path", run.string()},
                 {"resume_command", fmt::format("clustergcn train --run {} --resume", shell_word(run.string()))}};
  const fs::path full = fs::absolute(run).lexically_normal();
  record["name"] = (full.has_filename() ? full : full.parent_path()).filename().string();
  const fs::path environment = files.environment(), result = files.result(), clusters = files.clusters(),
                 embeddings = files.embeddings(), choices = files.choices();
  from_file(environment, [&] { read_environment(environment, record); });
  read_settings(config, record["store"].get<std::string>(), record);
  const fs::path metrics = files.metrics();
  if (fs::exists(result, ignored) && !fs::exists(metrics, ignored))
    throw Error("is missing, though the run has finished", metrics.string(), "restore it from a copy");
  record["curves"] = read_curves(metrics);
  record["stages"] = record["curves"]["stages"];
  record["curves"].erase("stages");

  if (const json chosen = read_if_there(choices); chosen.is_object())
    from_file(choices, [&] { read_choices(chosen, record); });
  const json ended = read_if_there(result), cut = read_if_there(clusters), hidden = read_if_there(embeddings);
  record["state"] = ended.is_object() ? "finished" : RunDirectory::is_held(run) ? "running" : "stopped";
  if (ended.is_object()) from_file(result, [&] { read_result(ended, record); });
  if (cut.is_object()) record["clusters"] = from_file(clusters, [&] { return cluster_figures(cut); });
  if (hidden.is_object()) record["embeddings"] = from_file(embeddings, [&] { return embedding_figures(hidden); });
  return record;
}

json read_runs(const std::vector<fs::path>& runs) {
  json list = json::array();
  std::map<std::string, int> uses;
  for (const fs::path& run : runs) {
    list.push_back(read_run(run));
    ++uses[list.back()["name"].get<std::string>()];
  }
  for (json& record : list)
    if (uses[record["name"].get<std::string>()] > 1) record["name"] = record["path"];
  const std::time_t now = std::time(nullptr);
  char written[32];
  std::tm time{};
  std::strftime(written, sizeof written, "%Y-%m-%d %H:%M UTC", ::gmtime_r(&now, &time));
  return {{"written", written}, {"runs", list}};
}

}  // namespace cgcn
