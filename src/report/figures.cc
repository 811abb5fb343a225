#include "report/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cgcn {
namespace {

using nlohmann::json;

// Few bins for few values.
size_t bins_for(size_t values) {
  return static_cast<size_t>(std::clamp(2 * std::sqrt(static_cast<double>(values)), 6.0, 20.0));
}

// type_error if it is not a whole number from 0 on: get<uint64_t> would make one of -1 and 1e308 too.
uint64_t count_of(const json& value) { return value.get_ref<const uint64_t&>(); }

// order: all classes, the `shown` that the page lists first. The rest are one more row and column, unless it is empty.
json shown_confusion(const json& confusion, const std::vector<size_t>& order, size_t shown) {
  std::vector<std::vector<uint64_t>> counts(shown + 1, std::vector<uint64_t>(shown + 1));
  uint64_t others = 0;
  for (size_t row = 0; row < order.size(); ++row)
    for (size_t column = 0; column < order.size(); ++column) {
      const uint64_t nodes = count_of(confusion.at(order[row]).at(order[column]));
      counts[std::min(row, shown)][std::min(column, shown)] += nodes;
      if (row >= shown || column >= shown) others += nodes;
    }
  if (others > 0) return counts;
  counts.pop_back();
  for (std::vector<uint64_t>& row : counts) row.pop_back();
  return counts;
}

json size_histogram(const std::vector<double>& sizes) {
  const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
  // Bins hold whole numbers, so that none is empty because of its width.
  const double width = std::max(1.0, std::ceil((*high - *low + 1) / static_cast<double>(bins_for(sizes.size()))));
  const auto bins = static_cast<size_t>(std::floor((*high - *low) / width)) + 1;
  const double end = *low + width * static_cast<double>(bins);
  return {{"low", *low}, {"width", width}, {"counts", histogram(sizes, *low, end, bins)}};
}

}  // namespace

std::vector<uint64_t> histogram(const std::vector<double>& values, double low, double high, size_t bins) {
  std::vector<uint64_t> counts(bins);
  for (const double value : values) {
    const double at = (value - low) / (high - low) * static_cast<double>(bins);
    ++counts[static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(bins - 1)))];
  }
  return counts;
}

json class_figures(const json& result) {
  const char* role = "train";
  for (const char* other : {"validation", "test"})
    if (count_of(result.at(other).at("nodes")) > 0) role = other;
  const json& scores = result.at(role);
  const json& classes = scores.at("classes");
  std::vector<size_t> order(classes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return count_of(classes[a].at("nodes")) > count_of(classes[b].at("nodes"));
  });
  json list = json::array();
  uint64_t total = 0;  // a class without nodes has no score
  for (const json& entry : classes) total += count_of(entry.at("nodes")) > 0 ? 1 : 0;
  for (size_t i = 0; i < std::min<uint64_t>(total, kShownClasses); ++i) list.push_back(classes[order[i]]);
  if (scores.value("class_count", classes.size()) > classes.size()) total = count_of(scores.at("class_count"));
  json figures = {{"part", role}, {"total", total}, {"list", list}};
  if (scores.contains("confusion")) figures["confusion"] = shown_confusion(scores.at("confusion"), order, list.size());
  return figures;
}

json embedding_figures(const json& embeddings) {
  const size_t nodes = embeddings.at("x").size();
  for (size_t i = 0; i < nodes; ++i) {
    embeddings.at("y").at(i).get<double>();
    embeddings.at("x").at(i).get<double>();
  }
  json figures = {{"part", embeddings.at("part").get<std::string>()},
                  {"nodes", count_of(embeddings.at("nodes"))},
                  {"share", {embeddings.at("share").at(0).get<double>(), embeddings.at("share").at(1).get<double>()}},
                  {"x", embeddings.at("x")},
                  {"y", embeddings.at("y")}};
  if (embeddings.contains("values")) {  // regression
    for (size_t i = 0; i < nodes; ++i)
      if (const json& value = embeddings.at("values").at(i); !value.is_null()) value.get<double>();
    figures["values"] = embeddings.at("values");
    return figures;
  }
  const auto names = embeddings.at("class_names").get<std::vector<std::string>>();
  std::vector<std::vector<size_t>> classes(nodes);
  for (size_t i = 0; i < nodes; ++i)
    for (const json& c : embeddings.at("classes").at(i))
      if (count_of(c) < names.size()) classes[i].push_back(count_of(c));
  figures["class_names"] = names;
  figures["classes"] = classes;
  return figures;
}

json cluster_figures(const json& clusters) {
  json figures = clusters;
  clusters.at("sizes").at(0);  // there is one at least
  std::vector<double> sizes;
  for (const json& size : clusters.at("sizes")) sizes.push_back(static_cast<double>(count_of(size)));
  const size_t groups = clusters.at("blocks").at("nodes").size();
  clusters.at("blocks").at("entries").at(groups * groups - 1);
  figures["sizes"] = size_histogram(sizes);
  const json& entropy = clusters.at("label_entropy");
  const auto own = entropy.at("clusters").get<std::vector<double>>(),
             random = entropy.at("random").get<std::vector<double>>();
  if (own.empty() || random.empty()) {
    figures.erase("label_entropy");
    return figures;
  }
  double top = 0;
  for (const auto* values : {&own, &random}) top = std::max(top, *std::max_element(values->begin(), values->end()));
  top = top > 0 ? top : 1;
  const size_t bins = bins_for(own.size());
  figures["label_entropy"] = {{"mean", entropy.at("mean")},
                              {"random_mean", entropy.at("random_mean")},
                              {"width", top / static_cast<double>(bins)},
                              {"own", histogram(own, 0, top, bins)},
                              {"random", histogram(random, 0, top, bins)}};
  return figures;
}

}  // namespace cgcn
