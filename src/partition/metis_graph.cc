// The graph as METIS wants it: the chosen nodes only, every link in both directions, no loops, whole-number weights.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/threads.h"
#include "partition/metis.h"

namespace cgcn {
namespace {

constexpr size_t kSymmetrisedRows = 4096;

// Where each node of the store is among the chosen ones; kNoNode where it is not.
Buffer<NodeId> positions_of(std::span<const NodeId> nodes, NodeId num_nodes) {
  Buffer<NodeId> position(num_nodes, kNoNode);
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i]] = static_cast<NodeId>(i);
  return position;
}

// The rows that METIS gets, under construction. Weights are floats until they are scaled.
class Rows {
 public:
  Rows(const CsrGraph& graph, std::span<const NodeId> nodes)
      : graph_(graph), nodes_(nodes), position_(positions_of(nodes, graph.num_nodes())) {
    count();
    place();
    if (graph_.directed()) merge_reverses();
  }

  Buffer<int32_t> offsets, targets;
  Buffer<float> weights;  // magnitudes; empty where the graph has none

 private:
  // Calls use(position of the neighbour, place in the graph) for each kept neighbour of row i.
  template <class Use>
  void for_each_kept(size_t i, Use&& use) const {
    const NodeId v = nodes_[i];
    for (EdgeOffset e = graph_.offsets()[v]; e < graph_.offsets()[size_t{v} + 1]; ++e) {
      const NodeId neighbour = graph_.targets()[e];
      if (neighbour != v && position_[neighbour] != kNoNode) use(position_[neighbour], e);
    }
  }

  void count() {
    const size_t n = nodes_.size();
    Buffer<uint64_t> lengths(n, 0);
    parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) for_each_kept(i, [&](NodeId, EdgeOffset) { ++lengths[i]; });
      graph_.release_rows(nodes_[begin], size_t{nodes_[end - 1]} + 1);
    });
    if (graph_.directed())  // a place for the reverse of each
      for (size_t i = 0; i < n; ++i) for_each_kept(i, [&](NodeId j, EdgeOffset) { ++lengths[j]; });
    check_metis_size(n, std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}));
    offsets = Buffer<int32_t>(n + 1);
    offsets[0] = 0;
    for (size_t i = 0; i < n; ++i) offsets[i + 1] = offsets[i] + static_cast<int32_t>(lengths[i]);
    targets = Buffer<int32_t>(static_cast<size_t>(offsets[n]));
    if (graph_.weighted()) weights = Buffer<float>(targets.size());
  }

  void put(size_t slot, NodeId target, EdgeOffset from) {
    targets[slot] = static_cast<int32_t>(target);
    if (graph_.weighted()) weights[slot] = std::abs(graph_.weights()[from]);
  }

  void place() {
    const size_t n = nodes_.size();
    if (!graph_.directed()) {
      parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          auto slot = static_cast<size_t>(offsets[i]);
          for_each_kept(i, [&](NodeId j, EdgeOffset e) { put(slot++, j, e); });
        }
        graph_.release_rows(nodes_[begin], size_t{nodes_[end - 1]} + 1);
      });
      return;
    }
    Buffer<int32_t> next(n);
    std::copy_n(offsets.begin(), n, next.begin());
    for (size_t i = 0; i < n; ++i)
      for_each_kept(i, [&](NodeId j, EdgeOffset e) {
        put(static_cast<size_t>(next[i]++), j, e);
        put(static_cast<size_t>(next[j]++), static_cast<NodeId>(i), e);
      });
  }

  // A + Aᵀ: an entry that was there in both directions becomes one, its weights added.
  void merge_reverses() {
    const size_t n = nodes_.size();
    Buffer<int32_t> lengths(n);
    parallel_blocks(n, kSymmetrisedRows, [&](size_t begin, size_t end) {
      std::vector<std::pair<int32_t, float>> row;
      for (size_t i = begin; i < end; ++i) {
        row.clear();
        for (auto e = static_cast<size_t>(offsets[i]); e < static_cast<size_t>(offsets[i + 1]); ++e)
          row.emplace_back(targets[e], weights.empty() ? 1.0f : weights[e]);
        std::sort(row.begin(), row.end());
        const auto first = static_cast<size_t>(offsets[i]);
        size_t length = 0;
        for (size_t k = 0; k < row.size(); ++k) {
          const bool again = k > 0 && row[k].first == row[k - 1].first;
          if (!again) targets[first + length++] = row[k].first;
          if (!weights.empty())
            weights[first + length - 1] = row[k].second + (again ? weights[first + length - 1] : 0.0f);
        }
        lengths[i] = static_cast<int32_t>(length);
      }
    });
    int32_t end = 0;
    for (size_t i = 0; i < n; ++i) {  // close the gaps, front to back
      const auto first = static_cast<size_t>(offsets[i]), length = static_cast<size_t>(lengths[i]);
      std::copy_n(targets.begin() + first, length, targets.begin() + end);
      if (!weights.empty()) std::copy_n(weights.begin() + first, length, weights.begin() + end);
      offsets[i] = end;
      end += lengths[i];
    }
    offsets[n] = end;
  }

  const CsrGraph& graph_;
  std::span<const NodeId> nodes_;
  Buffer<NodeId> position_;
};

// Whole numbers from 1, their mean about a thousand, their sum within METIS's 32 bits. A link of weight zero counts 1.
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

// kLabelled: two constraints, so that clusters are alike in nodes and in labelled nodes. kDegree: the links, which are
// what aggregation costs; a node counts 1 besides, so that isolated ones are spread too.
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
  Rows rows(data.graph, nodes);
  MetisGraph graph;
  if (!rows.weights.empty())
    graph.edge_weights = scale_weights({rows.weights.data(), static_cast<size_t>(rows.offsets[nodes.size()])});
  graph.offsets = std::move(rows.offsets);
  graph.targets = std::move(rows.targets);
  set_node_weights(graph, data, nodes, node_weights);
  return graph;
}

}  // namespace cgcn
