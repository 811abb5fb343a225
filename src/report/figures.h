// A run's result.json and clusters.json made small enough for a page: histograms, and the largest classes.
// json::exception where they are not as a run writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace cgcn {

// Of the test nodes; where there are none, of the validation nodes, else the training nodes. Classes from the one with
// the most nodes on; beyond kShownClasses of them the rest are one row and column of the matrix.
inline constexpr size_t kShownClasses = 48;
nlohmann::json class_figures(const nlohmann::json& result);

// Sizes and entropies as histograms; the block picture and the other figures as they are.
nlohmann::json cluster_figures(const nlohmann::json& clusters);

// Equal bins from low to high; a value on a boundary counts in the upper bin, the last one apart.
std::vector<uint64_t> histogram(const std::vector<double>& values, double low, double high, size_t bins);

}  // namespace cgcn
