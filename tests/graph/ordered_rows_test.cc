// N(A) in another order of rows and columns has the entries of N(A), each row in its own sequence.
#include "graph/ordered_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "random_dataset.h"

namespace cgcn {
namespace {

TEST(OrderedRows, HaveTheEntriesOfTheNodesInTheirSequence) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Dataset data = test::random_dataset(seed);
    const NodeId n = data.num_nodes();
    Random random(seed, Purpose::kTest, 5);
    std::vector<NodeId> place(n);
    std::iota(place.begin(), place.end(), 0);
    for (NodeId v = n; v > 1; --v) std::swap(place[v - 1], place[random.below(v)]);
    std::vector<NodeId> nodes(n);
    for (NodeId v = 0; v < n; ++v) nodes[place[v]] = v;
    const Normalisation normalisation{static_cast<NormalisationKind>(seed % 7), 0.5f};
    const NormalisedRows rows(data.graph, normalisation);
    const OrderedRows ordered(rows, place);
    const size_t begin = random.below(n), end = begin + random.below(n - static_cast<uint32_t>(begin) + 1);
    NormalisedRows::SparseRows found;
    ordered.fill(begin, end, found);
    ASSERT_EQ(found.view.rows, end - begin);
    ASSERT_EQ(found.view.columns, n);
    for (size_t r = begin; r < end; ++r) {
      uint64_t e = found.view.offsets[r - begin];
      rows.for_each(nodes[r], [&](NodeId u, float value) {
        ASSERT_LT(e, found.view.offsets[r - begin + 1]);
        EXPECT_EQ(found.view.column_indices[e], place[u]);
        EXPECT_EQ(found.view.values[e], value) << seed << ", row " << r;
        ++e;
      });
      EXPECT_EQ(e, found.view.offsets[r - begin + 1]);
    }
  }
}

}  // namespace
}  // namespace cgcn
