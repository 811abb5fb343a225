// What the columns of a feature table became: numbers as they are, missing values filled, texts as one column per
// category. Fitted once, on the training nodes of one graph; kept in its store and in models trained on it, so that
// later tables are encoded the same way and matched by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cgcn {

// What to do about a missing value. kIndicator fills as kMean does, and a further 0/1 column tells which were missing.
enum class MissingValues { kRefuse, kMean, kZero, kIndicator };

// One column of the table; it becomes width() feature columns.
struct ColumnEncoding {
  std::string name;
  bool one_hot = false;
  MissingValues missing = MissingValues::kRefuse;
  float fill = 0;                       // numbers: what stands for a missing one
  bool indicator = false;               // a further column that is 1 if the value is missing
  std::vector<std::string> categories;  // one_hot: in alphabetical order; any other text is 0 in all of them

  size_t width() const { return (one_hot ? categories.size() : 1) + (indicator ? 1 : 0); }
  bool plain() const { return !one_hot && missing == MissingValues::kRefuse; }
  bool operator==(const ColumnEncoding& other) const = default;
};

// The names of the feature columns: "age", "age (missing)", "country=FR".
std::vector<std::string> feature_names(const std::vector<ColumnEncoding>& columns);

// For meta.json and checkpoints. from_json throws nlohmann::json::exception if a field is missing or of another
// type.
void to_json(nlohmann::json& json, const ColumnEncoding& column);
void from_json(const nlohmann::json& json, ColumnEncoding& column);

// A list as a message shows it: the first five names, and how many there are: "'a', 'b' … (12 in all)".
std::string list_some(const std::vector<std::string>& names, size_t count);
inline std::string list_some(const std::vector<std::string>& names) { return list_some(names, names.size()); }

}  // namespace cgcn
