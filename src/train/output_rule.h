// How logits become classes and probabilities, as chosen on the validation nodes and kept with the model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/loss.h"

namespace cgcn {

struct OutputRule {
  std::optional<double> temperature;  // calibrated probabilities are those of logits / temperature; none: not fitted
  std::vector<float> thresholds;      // multi-label: a class is predicted if its logit is above; empty: 0 for all

  TargetScaling target = {};  // regression: what an output stands for

  float threshold(uint32_t label) const { return thresholds.empty() ? 0.0f : thresholds[label]; }
};

}  // namespace cgcn
