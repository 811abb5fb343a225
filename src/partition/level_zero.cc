// Level 0 of the multilevel partitioner: the graph among the chosen nodes.
#include "partition/multilevel.h"
#include "partition/symmetric_rows.h"

namespace cgcn {
namespace {

// So that their mean is about a thousand and their sum, of which no weight of a coarse link is more, fits 32 bits.
double weight_scale_of(std::span<const float> weights) {
  double sum = 0;
  for (const float weight : weights) sum += std::abs(weight);
  const double count = static_cast<double>(weights.size());
  return sum > 0 ? std::min(1000 * count, INT32_MAX - std::min(count, INT32_MAX - 1.0)) / sum : 0;
}

void set_level_weights(LevelGraph& graph, const Dataset& data, std::span<const NodeId> nodes, NodeWeights kind) {
  const size_t n = nodes.size();
  if (kind == NodeWeights::kDegree) {
    graph.node_weights[0] = Buffer<uint32_t>(n);
    for (size_t i = 0; i < n; ++i)
      graph.node_weights[0][i] = static_cast<uint32_t>(graph.degree(static_cast<NodeId>(i)) + 1);
  } else if (kind == NodeWeights::kLabelled) {
    Buffer<uint32_t> labelled(n);
    uint64_t count = 0;
    for (size_t i = 0; i < n; ++i) count += labelled[i] = data.is_trained_on(nodes[i]) ? 1 : 0;
    if (count == 0 || count == n) return;  // nothing that uniform weights do not do
    graph.num_constraints = 2;
    graph.node_weights[1] = std::move(labelled);
  }
}

}  // namespace

LevelGraph make_level_graph(const Dataset& data, std::span<const NodeId> nodes, NodeWeights node_weights) {
  LevelGraph graph;
  SymmetricRows<EdgeOffset, NodeId> rows(data.graph, nodes);
  const size_t entries = rows.offsets[nodes.size()];
  graph.offsets = std::move(rows.offsets);
  graph.targets = SharedArray<NodeId>(std::move(rows.targets)).first(entries);
  if (!rows.weights.empty()) {
    graph.float_weights = SharedArray<float>(std::move(rows.weights)).first(entries);
    graph.weight_scale = weight_scale_of(graph.float_weights);
  }
  set_level_weights(graph, data, nodes, node_weights);
  return graph;
}

}  // namespace cgcn
