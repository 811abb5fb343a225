// What a run came to, as JSON: result.json in its folder, and what train and evaluate print with --json.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "train/training.h"

namespace cgcn {

// Scores, counts per class, and the confusion matrix if there is one.
nlohmann::json describe_tally(const Tally& tally, const std::function<std::string(uint32_t)>& class_name);
nlohmann::json describe_smoothing(const SmoothingChoice& choice);
nlohmann::json describe_result(const TrainingSummary& summary, const Dataset& data);

}  // namespace cgcn
