#include "train/seed_scores.h"

#include <cmath>

#include "common/error.h"

namespace cgcn {

double student_quantile(uint32_t degrees_of_freedom) {
  CGCN_CHECK(degrees_of_freedom > 0);
  constexpr double kSmall[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees_of_freedom <= 10) return kSmall[degrees_of_freedom - 1];
  // Cornish and Fisher's expansion around the normal quantile: four digits from 11 on.
  const double z = 1.959964, n = degrees_of_freedom, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

Spread spread_of(std::span<const double> values) {
  CGCN_CHECK(!values.empty());
  const auto count = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  const double half = values.size() > 1 ? student_quantile(static_cast<uint32_t>(values.size() - 1)) *
                                              spread.deviation / std::sqrt(count)
                                        : 0;
  spread.low = spread.mean - half;
  spread.high = spread.mean + half;
  return spread;
}

}  // namespace cgcn
