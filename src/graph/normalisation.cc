#include "graph/normalisation.h"

#include <fmt/format.h>

#include <cmath>

namespace cgcn {

std::string Normalisation::name() const {
  switch (kind) {
    case NormalisationKind::kMean:
      return "mean";
    case NormalisationKind::kMeanIdentity:
      return "mean+identity";
    case NormalisationKind::kSelf:
      return "self";
    case NormalisationKind::kSelfIdentity:
      return "self+identity";
    case NormalisationKind::kSelfDiagonal:
      return fmt::format("self+{}*diag", lambda);
    case NormalisationKind::kSymmetric:
      return "symmetric";
    case NormalisationKind::kSum:
      return "sum";
  }
  return {};
}

float Normalisation::scale(double degree) const {
  const auto inverse = [](double value) { return value == 0 ? 0.0f : static_cast<float>(1 / value); };
  switch (kind) {
    case NormalisationKind::kMean:
    case NormalisationKind::kMeanIdentity:
      return inverse(degree);
    case NormalisationKind::kSelf:
    case NormalisationKind::kSelfIdentity:
    case NormalisationKind::kSelfDiagonal:
      return inverse(degree + 1);
    case NormalisationKind::kSymmetric:
      return degree + 1 > 0 ? static_cast<float>(1 / std::sqrt(degree + 1)) : 0.0f;
    case NormalisationKind::kSum:
      return 1;
  }
  return 0;
}

float Normalisation::diagonal(float scale, float self_weight) const {
  switch (kind) {
    case NormalisationKind::kMean:
    case NormalisationKind::kSum:
      return scale * self_weight;
    case NormalisationKind::kMeanIdentity:
      return scale * self_weight + 1;
    case NormalisationKind::kSelf:
      return scale * (self_weight + 1);
    case NormalisationKind::kSelfIdentity:
      return scale * (self_weight + 1) + 1;
    case NormalisationKind::kSelfDiagonal:
      return (1 + lambda) * scale * (self_weight + 1);
    case NormalisationKind::kSymmetric:
      return scale * scale * (self_weight + 1);
  }
  return 0;
}

void Normalisation::normalise(const SparseView& a, const float* scales, float* values, float* reverse) const {
  if (kind == NormalisationKind::kSum) return;  // as it is, in both directions
  for (uint32_t i = 0; i < a.rows; ++i)
    for (uint64_t e = a.offsets[i]; e < a.offsets[size_t{i} + 1]; ++e) {
      const uint32_t j = a.column_indices[e];
      const float weight = values[e];
      values[e] = i == j ? diagonal(scales[i], weight) : link(scales[i], scales[j], weight);
      if (reverse != nullptr) reverse[e] = i == j ? values[e] : link(scales[j], scales[i], weight);
    }
}

double weighted_degree(const CsrGraph& graph, NodeId v) {
  if (!graph.weighted()) return static_cast<double>(graph.degree(v));
  double sum = 0;
  for (const float weight : graph.neighbour_weights(v)) sum += weight;
  return sum;
}

}  // namespace cgcn
