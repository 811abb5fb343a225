#include "train/run_options.h"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "common/error.h"

namespace cgcn {
namespace {

std::string text_of(const toml::node& value, const std::string& where) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  throw Error("the value is neither text, a number, true nor false", where);
}

void set_all(const toml::table& table, const fs::path& file, OptionList& options) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const std::string where = fmt::format("{}:{}", file.string(), value.source().begin.line);
    if (const toml::table* inner = value.as_table())
      set_all(*inner, file, options);
    else
      options.set(name, text_of(value, where + ": " + name), where);
  }
}

// The parser and what it returns take stack for every level. No level is without a dot or a bracket of its own, so
// that a bound on these bounds the depth, whatever else the text is. A run's own file has a few dozen.
void check_depth(const std::string& text, const fs::path& file) {
  constexpr std::ptrdiff_t kMost = 2000;
  const auto levels = std::count_if(text.begin(), text.end(), [](char c) { return c == '.' || c == '[' || c == '{'; });
  if (levels > kMost)
    throw Error(fmt::format("is no configuration: it has {} dots and brackets", levels), file.string(),
                "a file such as a run's config.toml");
}

}  // namespace

void RunOptions::list_options(OptionList& list) {
  partition.list_options(list);
  method.list_options(list);
  model.list_options(list);
  train.list_options(list);
  optimiser.list_options(list);
  memory.list_options(list);
}

bool RunOptions::uses(const Option& option) const {
  const std::string& name = option.name();
  const auto is_one_of = [&](std::initializer_list<Method> methods) {
    return std::find(methods.begin(), methods.end(), method.method) != methods.end();
  };
  if ((option.group() == "Partition" && name != "transductive") || name == "per-batch" || name == "draw")
    return method.uses_clusters() && partition.uses(name);
  if (name == "batch-nodes") return is_one_of({Method::kSgd, Method::kGraphSage, Method::kFastGcn, Method::kVrGcn});
  if (name == "fanout") return is_one_of({Method::kGraphSage, Method::kVrGcn});
  if (name == "layer-nodes" || name == "importance") return is_one_of({Method::kFastGcn});
  if (name == "control-variate") return is_one_of({Method::kVrGcn});
  if (name == "input-normalisation") return !batch_aggregates_input();
  if (name == "first-layer") return !model.input_projection;
  if (name == "lambda")
    return model.normalisation == NormalisationKind::kSelfDiagonal ||
           (!batch_aggregates_input() && model.input_normalisation == NormalisationKind::kSelfDiagonal);
  if (name == "step-epochs" || name == "step-factor") return train.schedule == LearningRateSchedule::kStep;
  if (name == "evaluation-blocks") return train.evaluation.kind == EvaluationKind::kBlocks;
  return true;
}

void read_toml(const fs::path& file, OptionList& options) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  const std::string text = read_text_file(file, kMostBytes);
  check_depth(text, file);
  toml::table table;
  try {
    table = toml::parse(text, file.string());
  } catch (const toml::parse_error& problem) {
    throw Error(fmt::format("is not TOML: {}", problem.description()),
                fmt::format("{}:{}", file.string(), problem.source().begin.line));
  }
  set_all(table, file, options);
}

}  // namespace cgcn
