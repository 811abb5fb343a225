#include "reproduce/experiment.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/error.h"
#include "common/options.h"

namespace cgcn {
namespace {

std::vector<std::string> strings(const toml::node_view<const toml::node> node) {
  std::vector<std::string> result;
  if (const toml::array* array = node.as_array())
    for (const toml::node& item : *array) result.push_back(item.value_or(std::string()));
  return result;
}

std::map<ReproduceScale, std::vector<std::string>> scale_options(const toml::table& table) {
  return {{ReproduceScale::kSmall, strings(table["small"])}, {ReproduceScale::kPaper, strings(table["paper-size"])}};
}

std::vector<AxisValue> parse_axis(const toml::table& table, const char* key, const std::string& where) {
  std::vector<AxisValue> values;
  if (const toml::array* array = table[key].as_array())
    for (const toml::node& item : *array) {
      const toml::table& value = *item.as_table();
      values.push_back({.name = value["name"].value_or(std::string()),
                        .data = value["data"].value_or(std::string()),
                        .options = strings(value["options"]),
                        .scale_options = scale_options(value),
                        .runs = value["runs"].value_or(true)});
    }
  if (values.empty()) throw Error(fmt::format("has no {}", key), where);
  return values;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

Experiment parse_experiment(const ExperimentText& text) {
  const std::string where = "experiments/" + text.name;
  toml::table table;
  try {
    table = toml::parse(text.toml);
  } catch (const toml::parse_error& problem) {
    throw Error(std::string(problem.description()), where);
  }
  const toml::table& constant = table;
  Experiment result;
  result.name = text.name;
  result.title = constant["title"].value_or(std::string());
  result.paper = constant["paper"].value_or(std::string());
  result.question = constant["question"].value_or(std::string());
  result.command = constant["command"].value_or(std::string("train"));
  result.row_title = constant["row-title"].value_or(std::string());
  result.options = strings(constant["options"]);
  result.scale_options = scale_options(constant);
  result.small_data = constant["small-data"].value_or(1.0);
  result.rows = parse_axis(constant, "row", where);
  result.columns = parse_axis(constant, "column", where);
  if (const toml::array* figures = constant["figure"].as_array())
    for (const toml::node& item : *figures) {
      const toml::table& figure = *item.as_table();
      result.figures.push_back({.key = figure["key"].value_or(std::string()),
                                .label = figure["label"].value_or(std::string()),
                                .factor = figure["factor"].value_or(1.0),
                                .digits = figure["digits"].value_or(1)});
    }
  if (result.figures.empty()) throw Error("has no figures", where);
  if (const toml::array* histograms = constant["histogram"].as_array())
    for (const toml::node& item : *histograms) {
      const toml::table& histogram = *item.as_table();
      result.histograms.push_back({.key = histogram["key"].value_or(std::string()),
                                   .label = histogram["label"].value_or(std::string()),
                                   .width = histogram["width"].value_or(1.0)});
      if (!(result.histograms.back().width > 0)) throw Error("has a histogram without a width", where);
    }
  // [published.ROW] COLUMN = number, or one for each figure
  if (const toml::table* published = constant["published"].as_table())
    for (const auto& [row, columns] : *published)
      for (const auto& [column, value] : *columns.as_table()) {
        std::vector<double>& numbers = result.published[{std::string(row.str()), std::string(column.str())}];
        if (const toml::array* array = value.as_array()) {
          for (const toml::node& number : *array)
            numbers.push_back(number.value<double>().value_or(std::numeric_limits<double>::quiet_NaN()));
        } else {
          numbers.push_back(value.value<double>().value_or(std::numeric_limits<double>::quiet_NaN()));
        }
      }
  for (const auto& [place, numbers] : result.published) {
    const auto has = [](const std::vector<AxisValue>& axis, const std::string& name) {
      return std::any_of(axis.begin(), axis.end(), [&](const AxisValue& value) { return value.name == name; });
    };
    if (!has(result.rows, place.first) || !has(result.columns, place.second))
      throw Error(fmt::format("publishes a cell that does not exist: {}, {}", place.first, place.second), where);
  }
  return result;
}

std::vector<Experiment> all_experiments() {
  std::vector<Experiment> experiments;
  for (const ExperimentText& text : experiment_texts()) experiments.push_back(parse_experiment(text));
  return experiments;
}

Experiment find_experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const ExperimentText& text : experiment_texts()) {
    if (text.name == name) return parse_experiment(text);
    names.push_back(text.name);
  }
  const std::string near = nearest(name, names);
  throw Error(fmt::format("unknown experiment '{}'", name), "NAME",
              near.empty() ? "`clustergcn reproduce` lists them" : fmt::format("clustergcn reproduce {}", near));
}

std::vector<Cell> Experiment::cells(ReproduceScale scale) const {
  std::vector<Cell> result;
  for (const AxisValue& row : rows)
    for (const AxisValue& column : columns) {
      Cell cell{.row = row.name, .column = column.name, .data = row.data};
      cell.runs = row.runs && column.runs;
      const auto place = published.find({row.name, column.name});
      if (place != published.end()) cell.published = place->second;
      cell.published.resize(figures.size(), std::numeric_limits<double>::quiet_NaN());
      append(cell.options, options);
      append(cell.options, row.options);
      append(cell.options, column.options);
      append(cell.options, scale_options.at(scale));
      append(cell.options, row.scale_options.at(scale));
      append(cell.options, column.scale_options.at(scale));
      result.push_back(std::move(cell));
    }
  return result;
}

const ExperimentData& experiment_data(const std::string& name) {
  // Cora and Pubmed have no shape of their own: the sizes of the real ones.
  static const std::vector<ExperimentData> all = {
      {"cora", {"--nodes", "2708", "--edges", "5278", "--features", "1433", "--classes", "7", "--split", "5/18/77"}},
      {"pubmed", {"--nodes", "19717", "--edges", "44324", "--features", "500", "--classes", "3", "--split", "1/3/96"}},
      {"ppi", {"--like", "ppi"}},
      {"reddit", {"--like", "reddit"}},
      {"amazon", {"--like", "amazon"}},
      {"amazon2m", {"--like", "amazon2m"}},
      // four edges per node: neighbourhoods grow over many layers before they fill the graph
      {"sparse", {"--nodes", "40000", "--edges", "80000", "--seed", "3"}}};
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ExperimentData& data) { return data.name == name; });
  if (found == all.end()) throw Error("is not a graph that experiments know", name);
  return *found;
}

}  // namespace cgcn
