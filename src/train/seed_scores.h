// Scores of several seeds: mean, deviation, and the confidence interval of the mean (train --seeds).
#pragma once

#include <cstdint>
#include <span>

namespace cgcn {

struct Spread {
  double mean = 0;
  double deviation = 0;      // of the sample, n - 1; 0 for one value
  double low = 0, high = 0;  // 95 % confidence interval of the mean, by Student's t
};

// At least one value.
Spread spread_of(std::span<const double> values);

// The 97.5 % quantile of Student's t.
double student_quantile(uint32_t degrees_of_freedom);

}  // namespace cgcn
