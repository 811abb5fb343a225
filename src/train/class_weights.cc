#include "train/class_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "common/error.h"
#include "common/file.h"
#include "common/options.h"

namespace cgcn {
namespace {

std::vector<float> balanced_weights(const Dataset& data) {
  const Labels& labels = data.labels;
  const uint32_t classes = labels.num_classes();
  std::vector<uint64_t> counts(classes);
  uint64_t nodes = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (!data.is_trained_on(v)) continue;
    ++nodes;
    if (!labels.multi_label()) ++counts[static_cast<uint32_t>(labels.class_of(v))];
    for (uint32_t c = 0; labels.multi_label() && c < classes; ++c) counts[c] += labels.has(v, c);
  }
  const auto present =
      static_cast<double>(std::count_if(counts.begin(), counts.end(), [](uint64_t n) { return n > 0; }));
  std::vector<float> weights(classes, 1.0f);
  for (uint32_t c = 0; c < classes; ++c) {
    const auto count = static_cast<double>(counts[c]), all = static_cast<double>(nodes);
    if (counts[c] == 0) continue;
    weights[c] = static_cast<float>(labels.multi_label() ? (all - count) / count : all / (present * count));
  }
  return weights;
}

std::optional<float> parse_weight(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t')) text.remove_suffix(1);
  float value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As CSV quotes it.
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
  std::string plain;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    plain += text[i];
    if (text[i] == '"' && text[i + 1] == '"') ++i;
  }
  return plain;
}

std::vector<float> weights_of_file(const fs::path& path, const Dataset& data) {
  constexpr size_t kMostBytes = size_t{1} << 28;
  std::vector<std::string> names;
  std::unordered_map<std::string, uint32_t> classes;
  for (uint32_t c = 0; c < data.labels.num_classes(); ++c) classes.emplace(names.emplace_back(data.class_name(c)), c);
  std::vector<float> weights(classes.size(), 1.0f);
  std::vector<bool> named(classes.size(), false);
  const std::string text = read_text_file(path, kMostBytes);
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty() || line == "\r") continue;
    const std::string where = fmt::format("{}:{}", path.string(), number);
    const size_t comma = line.rfind(',');
    const std::optional<float> weight =
        comma == std::string_view::npos ? std::nullopt : parse_weight(line.substr(comma + 1));
    if (!weight && number == 1) continue;  // a header
    if (!weight || !std::isfinite(*weight) || *weight < 0)
      throw Error("is not a class and its weight", where, "lines such as: spam,4.5");
    const std::string name = unquoted(line.substr(0, comma));
    const auto found = classes.find(name);
    if (found == classes.end())
      throw Error(fmt::format("the graph has no class '{}'{}", name, did_you_mean(name, names)), where);
    if (named[found->second]) throw Error(fmt::format("class '{}' is listed twice", name), where);
    named[found->second] = true;
    weights[found->second] = *weight;
  }
  if (std::find(named.begin(), named.end(), true) == named.end())
    throw Error("names no class", path.string(), "lines such as: spam,4.5");
  if (std::all_of(weights.begin(), weights.end(), [](float w) { return w == 0; }))
    throw Error("gives every class the weight 0", path.string());
  return weights;
}

}  // namespace

bool is_weights_file(const std::string& option) { return option != "none" && option != "balanced"; }

std::vector<float> read_class_weights(const std::string& option, const Dataset& data) {
  if (option == "none") return {};
  return option == "balanced" ? balanced_weights(data) : weights_of_file(option, data);
}

}  // namespace cgcn
