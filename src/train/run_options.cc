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

void set_all(const toml::table& table, const fs::path& file, OptionList& options, std::vector<std::string>& names) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const std::string where = fmt::format("{}:{}", file.string(), value.source().begin.line);
    if (const toml::table* inner = value.as_table())
      set_all(*inner, file, options, names);
    else
      options.set(names.emplace_back(name), text_of(value, where + ": " + name), where);
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

DataTraits traits_of(const Dataset& data) {
  return {.sparse = !data.features.is_dense(),
          .identity = data.features.kind() == FeatureMatrix::Kind::kIdentity,
          .has_validation = data.split_sizes()[1] > 0,
          .multi_label = data.labels.multi_label(),
          .regression = data.labels.regression()};
}

void RunOptions::list_options(OptionList& list) {
  partition.list_options(list);
  method.list_options(list);
  model.list_options(list);
  train.list_options(list);
  optimiser.list_options(list);
  memory.list_options(list);
  relate(list);
}

void RunOptions::relate(OptionList& list) {
  const auto need = [&list](std::initializer_list<const char*> names, const std::function<bool()>& used,
                            const char* why_not) {
    for (const char* name : names) list.find(name)->needs(used, why_not);
  };
  const auto has_clusters = [this] { return method.uses_clusters(); };
  for (Option& option : list.all())
    if (option.group() == "Partition" && option.name() != "transductive")
      option.needs(has_clusters, "this --method has no clusters");
  need({"per-batch", "draw"}, has_clusters, "this --method has no clusters");
  need(
      {"batches-per-step"}, [this] { return method.method != Method::kFullBatch; }, "an epoch has one batch");

  // By the edges of a batch.
  const auto aggregates = [this] { return model.layers > 1 || batch_aggregates_input(); };
  need({"fanout", "layer-nodes", "importance", "control-variate", "normalisation", "dropout-place"}, aggregates,
       "a single layer uses A·X and no edges of the batch");
  need(
      {"dropout-place"}, [this] { return model.dropout > 0 || model.first_dropout() > 0; }, "--dropout 0");
  need(
      {"input-normalisation"}, [this] { return method.first_layer == FirstLayer::kExact; }, "--first-layer batch");
  need(
      {"input-normalisation"}, [this] { return !model.input_projection; }, "--input-projection");
  need(
      {"first-layer"}, [this] { return !model.input_projection; },
      "--input-projection aggregates by the batch's edges");
  const auto takes_lambda = [this, aggregates] {
    return (aggregates() && model.normalisation == NormalisationKind::kSelfDiagonal) ||
           (!batch_aggregates_input() && model.input_normalisation == NormalisationKind::kSelfDiagonal);
  };
  need({"lambda"}, takes_lambda, "only self+diagonal takes it");

  const auto hidden_layers = [this] {  // with norm and ReLU
    return model.layers - (model.input_projection ? 0 : 1) + (model.head_kind() == HeadKind::kLinear ? 1 : 0);
  };
  const auto is_deep = [this, hidden_layers] { return hidden_layers() > 0 || model.head_kind() == HeadKind::kDense; };
  need({"hidden"}, is_deep, "one layer is not hidden");
  need(
      {"layer-norm", "batch-norm"}, [hidden_layers] { return hidden_layers() > 0; }, "one layer is not hidden");
  need(
      {"layer-norm"}, [this] { return !model.batch_norm; }, "--batch-norm takes its place");
  need(
      {"residual", "initial-residual", "identity-mapping"}, [hidden_layers] { return hidden_layers() > 1; },
      "only hidden layers whose input is as wide as their output have it, and there are none");
  need(
      {"norm-place"},
      [this, hidden_layers] { return (model.residual || model.initial_residual > 0) && hidden_layers() > 1; },
      "without --residual both places are the same function");
  need(
      {"head"}, [this] { return model.jumping == Jumping::kNone; }, "--jumping has a linear head");
  need(
      {"precision"}, [this, hidden_layers] { return !data.sparse || hidden_layers() > 0; },
      "the products of a single layer on sparse features are float32");
  need({"decay-scope"}, is_deep, "there is no other layer");
  need(
      {"decay-scope"}, [this] { return optimiser.weight_decay > 0; }, "--weight-decay 0");
  need(
      {"optimiser"}, [this] { return optimiser.weight_decay > 0; }, "without --weight-decay AdamW is Adam");
  need(
      {"dense-adam"}, [this] { return data.sparse; }, "the features are dense");
  need(
      {"normalise-rows"}, [this] { return !data.identity; }, "the graph has no features");
  need(
      {"patience", "keep", "select-by", "thresholds", "smooth", "eval-every", "evaluation", "evaluation-blocks"},
      [this] { return data.has_validation; }, "there are no validation nodes");
  need(
      {"loss"}, [this] { return data.regression; }, "the labels are classes");
  need(
      {"smooth"}, [this] { return !data.regression; }, "the labels are numbers");
  need(
      {"thresholds"}, [this] { return !data.regression; }, "the labels are numbers");
  need(
      {"thresholds"}, [this] { return data.multi_label || data.regression; }, "every node has one class");
}

std::vector<std::string> read_toml(const fs::path& file, OptionList& options) {
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
  std::vector<std::string> names;
  set_all(table, file, options, names);
  return names;
}

}  // namespace cgcn
