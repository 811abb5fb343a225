// The normalisations once more, written from the paper's matrix formulas: what the program's own are compared with.
#pragma once

#include <cmath>

#include "graph/normalisation.h"
#include "random_dataset.h"

namespace cgcn::test {

inline DenseMatrix normalise_densely(const DenseMatrix& adjacency, const Normalisation& normalisation) {
  const size_t n = adjacency.size();
  std::vector<double> degree(n, 0);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) degree[i] += adjacency[i][j];
  DenseMatrix mean = zeros(n, n), self = zeros(n, n), result = zeros(n, n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const double identity = i == j ? 1 : 0, with_self = adjacency[i][j] + identity;
      mean[i][j] = degree[i] > 0 ? adjacency[i][j] / degree[i] : 0;
      self[i][j] = with_self / (degree[i] + 1);
      switch (normalisation.kind) {
        case NormalisationKind::kMean:
          result[i][j] = mean[i][j];
          break;
        case NormalisationKind::kMeanIdentity:
          result[i][j] = mean[i][j] + identity;
          break;
        case NormalisationKind::kSelf:
          result[i][j] = self[i][j];
          break;
        case NormalisationKind::kSelfIdentity:
          result[i][j] = self[i][j] + identity;
          break;
        case NormalisationKind::kSelfDiagonal:
          result[i][j] = self[i][j] + normalisation.lambda * self[i][j] * identity;
          break;
        case NormalisationKind::kSymmetric:
          result[i][j] = with_self / std::sqrt(degree[i] + 1) / std::sqrt(degree[j] + 1);
          break;
        case NormalisationKind::kSum:
          result[i][j] = adjacency[i][j];
          break;
      }
    }
  return result;
}

inline constexpr NormalisationKind kAllNormalisations[] = {
    NormalisationKind::kMean,         NormalisationKind::kMeanIdentity, NormalisationKind::kSelf,
    NormalisationKind::kSelfIdentity, NormalisationKind::kSelfDiagonal, NormalisationKind::kSymmetric,
    NormalisationKind::kSum};

}  // namespace cgcn::test
