// The graph as METIS wants it: the chosen nodes only, with whole-number weights.
#include "partition/symmetric_rows.h"

namespace cgcn {
namespace {

// Whole numbers from 1, their mean about a thousand, their sum within METIS's 32 bits. An edge of weight zero counts 1.
Buffer<int32_t> scale_weights(std::span<const float> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0), count = static_cast<double>(weights.size());
  const double scale = sum > 0 ? std::min(1000 * count, INT32_MAX - count) / sum : 0;
  Buffer<int32_t> scaled(weights.size());
  parallel_blocks(weights.size(), size_t{1} << 20, [&](size_t begin, size_t end) {
    for (size_t e = begin; e < end; ++e)
      scaled[e] = std::max(1, static_cast<int32_t>(scale * static_cast<double>(weights[e])));
  });
  return scaled;
}

// kLabelled: two constraints, so that clusters are alike in nodes and in labelled nodes. kDegree: the edges, which are
// what aggregation costs; a node counts 1 as well, so that isolated ones are spread too.
void set_node_weights(MetisGraph& graph, const Dataset& data, std::span<const NodeId> nodes, NodeWeights kind) {
  const size_t n = nodes.size();
  if (kind == NodeWeights::kDegree) {
    graph.node_weights = Buffer<int32_t>(n);
    const bool fits = graph.targets.size() + n <= INT32_MAX;
    for (size_t i = 0; i < n; ++i) graph.node_weights[i] = fits ? graph.offsets[i + 1] - graph.offsets[i] + 1 : 1;
  } else if (kind == NodeWeights::kLabelled) {
    const auto labelled =
        static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [&](NodeId v) { return data.is_trained_on(v); }));
    if (labelled == 0 || labelled == n) return;  // nothing that uniform weights do not do
    graph.num_constraints = 2;
    graph.node_weights = Buffer<int32_t>(2 * n);
    for (size_t i = 0; i < n; ++i) {
      graph.node_weights[2 * i] = 1;
      graph.node_weights[2 * i + 1] = data.is_trained_on(nodes[i]) ? 1 : 0;
    }
  }
}

}  // namespace

MetisGraph make_metis_graph(const Dataset& data, std::span<const NodeId> nodes, NodeWeights node_weights) {
  SymmetricRows<int32_t, int32_t> rows(data.graph, nodes);
  MetisGraph graph;
  if (!rows.weights.empty())
    graph.edge_weights = scale_weights({rows.weights.data(), static_cast<size_t>(rows.offsets[nodes.size()])});
  graph.offsets = std::move(rows.offsets);
  graph.targets = std::move(rows.targets);
  set_node_weights(graph, data, nodes, node_weights);
  return graph;
}

}  // namespace cgcn
