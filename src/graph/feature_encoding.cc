#include "graph/feature_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cgcn {

NLOHMANN_JSON_SERIALIZE_ENUM(MissingValues, {{MissingValues::kRefuse, "refuse"},
                                             {MissingValues::kMean, "mean"},
                                             {MissingValues::kZero, "zero"},
                                             {MissingValues::kIndicator, "indicator"}})

std::vector<std::string> feature_names(const std::vector<ColumnEncoding>& columns) {
  std::vector<std::string> names;
  for (const ColumnEncoding& column : columns) {
    if (!column.one_hot) names.push_back(column.name);
    for (const std::string& category : column.categories) names.push_back(column.name + "=" + category);
    if (column.indicator) names.push_back(column.name + " (missing)");
  }
  return names;
}

void to_json(nlohmann::json& json, const ColumnEncoding& column) {
  json = {{"name", column.name}, {"kind", column.one_hot ? "one-hot" : "number"}, {"missing", column.missing}};
  if (column.one_hot)
    json["categories"] = column.categories;
  else if (column.missing != MissingValues::kRefuse)
    json["fill"] = column.fill;
  if (column.indicator) json["indicator"] = true;
}

void from_json(const nlohmann::json& json, ColumnEncoding& column) {
  column = {};
  json.at("name").get_to(column.name);
  column.one_hot = json.at("kind").get<std::string>() == "one-hot";
  column.missing = json.at("missing").get<MissingValues>();
  column.fill = json.value("fill", 0.0f);
  column.indicator = json.value("indicator", false);
  if (column.one_hot) json.at("categories").get_to(column.categories);
}

std::string list_some(const std::vector<std::string>& names, size_t count) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i)
    text += fmt::format("{}'{}'", i > 0 ? ", " : "", names[i]);
  if (count > std::min(kShown, names.size())) text += fmt::format(" … ({} in total)", count);
  return text;
}

}  // namespace cgcn
