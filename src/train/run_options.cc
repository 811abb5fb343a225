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

std::string RunOptions::why_unused(const Option& option, const DataTraits& data) const {
  const std::string& name = option.name();
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto only_if = [](bool used, const char* why) { return used ? std::string() : std::string(why); };
  const auto only_for = [&](std::initializer_list<Method> methods) {
    return only_if(std::find(methods.begin(), methods.end(), method.method) != methods.end(),
                   "another --method takes it");
  };
  const bool aggregates = model.layers > 1 || batch_aggregates_input();  // by the links of a batch
  const auto no_links = [&] { return only_if(aggregates, "one layer takes A·X and no links of a batch"); };

  if ((option.group() == "Partition" && name != "transductive") || is({"per-batch", "draw"})) {
    if (!method.uses_clusters()) return "this --method has no clusters";
    return only_if(partition.uses(name), "another partitioner takes it");
  }
  if (name == "batch-nodes") return only_for({Method::kSgd, Method::kGraphSage, Method::kFastGcn, Method::kVrGcn});
  if (is({"fanout", "layer-nodes", "importance", "control-variate"})) {
    const std::string why = name == "fanout"            ? only_for({Method::kGraphSage, Method::kVrGcn})
                            : name == "control-variate" ? only_for({Method::kVrGcn})
                                                        : only_for({Method::kFastGcn});
    if (!why.empty() || !aggregates) return why.empty() ? no_links() : why;
    return only_if(name != "importance" || method.layer_nodes > 0, "--layer-nodes 0 draws none");
  }
  if (name == "normalisation") return no_links();
  if (name == "input-normalisation")
    return only_if(!batch_aggregates_input(), model.input_projection ? "--input-projection" : "--first-layer batch");
  if (name == "first-layer")
    return only_if(!model.input_projection, "--input-projection aggregates by the batch's edges");
  if (name == "lambda")
    return only_if((aggregates && model.normalisation == NormalisationKind::kSelfDiagonal) ||
                       (!batch_aggregates_input() && model.input_normalisation == NormalisationKind::kSelfDiagonal),
                   "only self+diagonal takes it");
  const uint32_t hidden_layers = model.layers - (model.input_projection ? 0 : 1);
  if (name == "hidden") return only_if(hidden_layers > 0 || model.head == HeadKind::kDense, "one layer is not hidden");
  if (name == "layer-norm") return only_if(hidden_layers > 0, "one layer is not hidden");
  if (name == "residual") return only_if(hidden_layers > 1, "it joins layers 2 … L-1, and there are none");
  if (name == "norm-place")
    return only_if(model.residual && hidden_layers > 1, "without --residual both places are the same function");
  if (name == "dropout-place") {
    if (model.dropout == 0) return "--dropout 0";
    return no_links();
  }
  if (name == "decay-scope") {
    if (optimiser.weight_decay == 0) return "--weight-decay 0";
    return only_if(hidden_layers > 0 || model.head == HeadKind::kDense, "there is no other layer");
  }
  if (name == "optimiser") return only_if(optimiser.weight_decay > 0, "without --weight-decay AdamW is Adam");
  if (name == "dense-adam") return only_if(data.sparse, "the features are dense");
  if (name == "normalise-rows") return only_if(!data.identity, "the graph has no features");
  const bool steps = train.schedule == LearningRateSchedule::kStep;
  if (is({"step-epochs", "step-factor"}) && !steps) return "only --schedule step takes it";
  if (is({"schedule", "step-epochs", "step-factor"}) && steps && train.step_epochs >= train.epochs)
    return fmt::format("the first step would come after epoch {}", train.step_epochs);
  if (name == "schedule" && train.schedule == LearningRateSchedule::kCosine)
    return only_if(train.epochs > 1, "one epoch has the full rate");
  if (is({"patience", "keep", "eval-every", "evaluation", "evaluation-blocks"}) && !data.has_validation)
    return "there are no validation nodes";
  if (name == "evaluation-blocks")
    return only_if(train.evaluation.kind == EvaluationKind::kBlocks, "--evaluation exact");
  return {};
}

bool RunOptions::may_change(const Option& option) const {
  const std::string& name = option.name();
  if (name == "epochs") return train.schedule != LearningRateSchedule::kCosine;  // whose rates depend on it
  return option.group() == "Evaluation" || option.group() == "Memory" || name == "patience" || name == "keep" ||
         name == "checkpoint-seconds" || name == "from";
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
