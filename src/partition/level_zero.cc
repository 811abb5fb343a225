// Level 0 of the multilevel partitioner: the graph among the chosen nodes.
#include <atomic>

#include "common/interrupt.h"
#include "partition/multilevel.h"
#include "partition/symmetric_rows.h"

namespace cgcn {
namespace {

constexpr uint64_t kBytesPerNode = 60;  // of labels, weights, plans and offsets

// Calls use(entry) for the edges of v that count.
template <class Use>
void for_each_counted(const LevelGraph& graph, NodeId v, Use&& use) {
  for (EdgeOffset e = graph.row_begin(v); e < graph.row_end(v); ++e)
    if (const NodeId u = graph.target(e); u != v && u != kNoNode) use(e);
}

// So that the mean weight is about a thousand and the sum, of which no weight of a coarse edge is more, fits 32 bits.
double find_weight_scale(const LevelGraph& graph) {
  double sum = 0, count = 0;
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (v % kSymmetrisedRows == 0) throw_if_interrupted();
    for_each_counted(graph, v, [&](EdgeOffset e) {
      sum += std::abs(graph.float_weights[e]);
      ++count;
    });
    graph.release_rows(v, size_t{v} + 1);
  }
  return sum > 0 ? std::min(1000 * count, INT32_MAX - std::min(count, INT32_MAX - 1.0)) / sum : 0;
}

// kLabelled: two constraints, so that clusters are alike in nodes and in labelled nodes. kDegree: the edges; a node
// counts 1 as well.
void set_level_weights(LevelGraph& graph, const Dataset& data, std::span<const NodeId> nodes, NodeWeights kind) {
  const size_t n = nodes.size();
  if (kind == NodeWeights::kDegree) {
    graph.node_weights[0] = Buffer<uint32_t>(n);
    parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      for (size_t v = begin; v < end; ++v) {
        uint32_t& weight = graph.node_weights[0][v] = 1;
        for_each_counted(graph, static_cast<NodeId>(v), [&](EdgeOffset) { weight += weight < UINT32_MAX ? 1 : 0; });
      }
      graph.release_rows(begin, end);
    });
  } else if (kind == NodeWeights::kLabelled) {
    Buffer<uint32_t> labelled(n);
    uint64_t count = 0;
    for (size_t i = 0; i < n; ++i) count += labelled[i] = data.is_trained_on(nodes[i]) ? 1 : 0;
    if (count == 0 || count == n) return;  // nothing that uniform weights do not do
    graph.num_constraints = 2;
    graph.node_weights[1] = std::move(labelled);
  }
}

// The symmetrised rows among the nodes, in memory.
void copy_rows(LevelGraph& graph, const Dataset& data, std::span<const NodeId> nodes) {
  SymmetricRows<EdgeOffset, NodeId> rows(data.graph, nodes);
  const size_t entries = rows.offsets[nodes.size()];
  graph.offsets = std::move(rows.offsets);
  graph.targets = SharedArray<NodeId>(std::move(rows.targets)).first(entries);
  if (!rows.weights.empty()) graph.float_weights = SharedArray<float>(std::move(rows.weights)).first(entries);
}

}  // namespace

uint64_t estimate_multilevel_memory(uint64_t nodes, uint64_t entries) { return kBytesPerNode * nodes + 9 * entries; }
uint64_t least_multilevel_memory(uint64_t store_nodes, uint64_t entries, bool directed) {
  // The first coarse level has about an eighth of the entries, of 8 bytes, and is there twice while it is made.
  return directed ? estimate_multilevel_memory(store_nodes, entries) : (kBytesPerNode + 8) * store_nodes + 2 * entries;
}

LevelGraph make_level_graph(const Dataset& data, std::span<const NodeId> nodes, NodeWeights node_weights,
                            uint64_t memory) {
  LevelGraph graph;
  const bool all = nodes.size() == data.num_nodes();
  const bool fits = memory >= estimate_multilevel_memory(nodes.size(), data.graph.num_entries());
  if (data.graph.directed() || (!all && fits)) {
    copy_rows(graph, data, nodes);
  } else {
    graph.offsets = data.graph.shared_offsets();
    graph.targets = data.graph.shared_targets();
    graph.float_weights = data.graph.shared_weights();
    if (!all) {
      graph.nodes = nodes;
      graph.position = positions_of(nodes, data.num_nodes());
    }
    if (!fits) graph.streamed = std::max<uint64_t>(memory / 4, uint64_t{1} << 20);
  }
  if (!graph.position.empty()) {
    std::atomic<uint64_t> entries = 0;
    parallel_blocks(nodes.size(), kSymmetrisedRows, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      uint64_t among = 0;
      for (size_t v = begin; v < end; ++v)
        for_each_counted(graph, static_cast<NodeId>(v), [&](EdgeOffset) { ++among; });
      entries += among;
      graph.release_rows(begin, end);
    });
    graph.entries_among = entries;
  }
  if (!graph.float_weights.empty()) graph.weight_scale = find_weight_scale(graph);
  set_level_weights(graph, data, nodes, node_weights);
  return graph;
}

}  // namespace cgcn
