// A run's result.json, clusters.json and embeddings.json, small enough for a page: histograms, and the largest classes.
// json::exception if they are not as a run writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace cgcn {

// Of the test nodes; if there are none, of the validation nodes, else the training nodes. The class with the most nodes
// comes first; those without nodes, and beyond kShownClasses the smallest, are one row and column of the matrix.
inline constexpr size_t kShownClasses = 128;
nlohmann::json class_figures(const nlohmann::json& result);

// Sizes and entropies as histograms; the picture of links and the other figures as they are.
nlohmann::json cluster_figures(const nlohmann::json& clusters);

// As the run wrote them, once it is sure that the page can draw them.
nlohmann::json embedding_figures(const nlohmann::json& embeddings);

// Equal bins from low to high; a value on a boundary counts in the upper bin, the last one apart.
std::vector<uint64_t> histogram(const std::vector<double>& values, double low, double high, size_t bins);

}  // namespace cgcn
