// What train --seeds prints and writes when all seeds are trained.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "train/training.h"

namespace cgcn {

struct SeedResult {
  uint64_t seed = 0;
  TrainingSummary summary;
};

// Scores of each seed, and their mean, deviation and 95 % confidence interval by role and score.
nlohmann::json describe_seeds(const std::vector<SeedResult>& results);
void print_seeds(const std::vector<SeedResult>& results, const Dataset& data, const fs::path& folder);

}  // namespace cgcn
