#include "graph/normalisation.h"

#include <gtest/gtest.h>

#include <set>

#include "normalised_dense.h"

namespace cgcn {
namespace {

// Row by row from scale() and diagonal(), as the header says, against the matrix formulas.
TEST(Normalisation, EveryKindIsItsFormulaOnRandomGraphs) {
  for (uint32_t seed = 0; seed < 210; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = test::random_dataset(seed);
    const Normalisation normalisation{test::kAllNormalisations[seed % 7], 0.25f};
    const auto a = test::dense_adjacency(data.graph);
    const auto expected = test::normalise_densely(a, normalisation);
    const NodeId n = data.num_nodes();
    std::vector<float> scale(n);
    for (NodeId i = 0; i < n; ++i) scale[i] = normalisation.scale(weighted_degree(data.graph, i));
    for (NodeId i = 0; i < n; ++i)
      for (NodeId j = 0; j < n; ++j) {
        const auto weight = static_cast<float>(a[i][j]);
        const float value = i == j ? normalisation.diagonal(scale[i], weight)
                                   : weight * scale[i] * (normalisation.scales_columns() ? scale[j] : 1.0f);
        EXPECT_NEAR(value, expected[i][j], 1e-6 * (1 + expected[i][j]));
        if (i == j && value != 0 && weight == 0) {
          EXPECT_TRUE(normalisation.has_diagonal()) << normalisation.name();
        }
      }
    if (HasFailure()) return;
  }
}

TEST(Normalisation, NamesTellThemApart) {
  std::set<std::string> names;
  for (const NormalisationKind kind : test::kAllNormalisations) names.insert(Normalisation{kind}.name());
  names.insert(Normalisation{NormalisationKind::kSelfDiagonal, 0.5f}.name());
  EXPECT_EQ(names.size(), std::size(test::kAllNormalisations) + 1);
}

}  // namespace
}  // namespace cgcn
