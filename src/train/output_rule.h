// How logits become classes and probabilities, as chosen on the validation nodes and kept with the model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/loss.h"

namespace cgcn {

struct OutputRule {
  // Calibrated probabilities are those of logits / temperature; none: it was not fitted.
  std::optional<double> temperature = {};
  // Multi-label: a class is predicted if its logit is above; empty: 0 for all.
  std::vector<float> thresholds = {};
  TargetScaling target = {};  // regression: what an output stands for

  float threshold(uint32_t label) const { return thresholds.empty() ? 0.0f : thresholds[label]; }
};

}  // namespace cgcn
