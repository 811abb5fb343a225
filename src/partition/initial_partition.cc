#include "partition/initial_partition.h"

#include <numeric>

namespace cgcn {
namespace {

// A group's nodes stand together: group g has nodes order[starts[g]] … order[starts[g + 1]); place is the inverse of
// order.
struct Groups {
  Groups(std::span<const uint32_t> group_of, size_t count)
      : starts(count + 1, 0), order(group_of.size()), place(group_of.size()) {
    for (const uint32_t group : group_of)
      if (group != kNoNode) ++starts[size_t{group} + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    for (size_t v = 0; v < group_of.size(); ++v) {
      place[v] = group_of[v] == kNoNode ? kNoNode : static_cast<NodeId>(next[group_of[v]]++);
      if (place[v] != kNoNode) order[place[v]] = static_cast<NodeId>(v);
    }
  }
  std::vector<size_t> starts;
  Buffer<NodeId> order, place;
};

// METIS adds up weights in 32 bits.
double fit_metis(double total) { return total < INT32_MAX ? 1 : (INT32_MAX - 1) / total; }

int32_t shrink_weight(uint32_t weight, double scale) {
  return std::max(1, static_cast<int32_t>(std::min<double>(weight * scale, INT32_MAX)));
}

// The links within one group. Runs in METIS's process: no threads.
MetisGraph graph_of_group(const LevelGraph& graph, const Groups& groups, size_t group) {
  const size_t begin = groups.starts[group], end = groups.starts[group + 1];
  MetisGraph metis;
  metis.offsets = Buffer<int32_t>(end - begin + 1);
  std::vector<int32_t> targets;
  std::vector<uint32_t> weights;
  double total = 0;
  metis.offsets[0] = 0;
  graph.with_weights([&](auto weight_of) {
    for (size_t i = begin; i < end; ++i) {
      const NodeId v = groups.order[i];
      for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[size_t{v} + 1]; ++e) {
        const NodeId u = graph.targets[e];
        const size_t at = groups.place[u];
        if (u == v || at < begin || at >= end) continue;
        targets.push_back(static_cast<int32_t>(at - begin));
        weights.push_back(weight_of(e));
        total += weights.back();
      }
      metis.offsets[i - begin + 1] = static_cast<int32_t>(targets.size());
    }
  });
  if (targets.size() > INT32_MAX) throw std::bad_alloc();
  metis.targets = Buffer<int32_t>(targets.size());
  std::copy(targets.begin(), targets.end(), metis.targets.begin());
  metis.edge_weights = Buffer<int32_t>(weights.size());
  const double scale = fit_metis(total + static_cast<double>(weights.size()));
  for (size_t e = 0; e < weights.size(); ++e) metis.edge_weights[e] = shrink_weight(weights[e], scale);
  const auto constraints = static_cast<int32_t>(graph.num_constraints);
  metis.num_constraints = constraints;
  metis.node_weights = Buffer<int32_t>((end - begin) * graph.num_constraints);
  for (size_t c = 0; c < graph.num_constraints; ++c) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += graph.node_weight(groups.order[i], c);
    const double node_scale = fit_metis(sum + static_cast<double>(end - begin));
    for (size_t i = begin; i < end; ++i) {
      const uint32_t weight = graph.node_weight(groups.order[i], c);
      metis.node_weights[(i - begin) * graph.num_constraints + c] = weight == 0 ? 0 : shrink_weight(weight, node_scale);
    }
  }
  return metis;
}

MetisRun partition_groups(const LevelGraph& graph, std::span<const uint32_t> group_of, std::span<const uint32_t> parts,
                          std::span<const float> imbalance, uint64_t seed) {
  const Groups groups(group_of, parts.size());
  MetisRun run = run_metis_pieces(groups.starts, parts, [&](size_t group) {
    MetisPiece piece;
    piece.graph = graph_of_group(graph, groups, group);
    piece.parts = parts[group];
    piece.options.seed = seed + group;
    piece.options.imbalance = imbalance[group];
    return piece;
  });
  Buffer<uint32_t> clusters(group_of.size());
  for (size_t v = 0; v < clusters.size(); ++v)
    clusters[v] = groups.place[v] == kNoNode ? kNoNode : run.clusters[groups.place[v]];
  run.clusters = std::move(clusters);
  return run;
}

}  // namespace

MetisRun partition_level(const LevelGraph& graph, uint32_t parts, float imbalance, uint64_t seed) {
  Buffer<uint32_t> all(graph.num_nodes());
  for (NodeId v = 0; v < graph.num_nodes(); ++v) all[v] = graph.has(v) ? 0 : kNoNode;
  return partition_groups(graph, all, std::span(&parts, 1), std::span(&imbalance, 1), seed);
}

MetisRun split_groups(const LevelGraph& graph, Clusters& groups, std::span<const uint32_t> parts, float imbalance,
                      uint64_t seed) {
  const double total =
      static_cast<double>(std::accumulate(groups.weight[0].begin(), groups.weight[0].end(), uint64_t{0}));
  const double mean = total / static_cast<double>(std::accumulate(parts.begin(), parts.end(), uint64_t{0}));
  std::vector<float> allowed(parts.size());
  for (size_t g = 0; g < parts.size(); ++g) {
    const double own = static_cast<double>(groups.weight[0][g]) / parts[g];
    allowed[g] = static_cast<float>(std::max(1.002, own > 0 ? imbalance * mean / own : 1.002));
  }
  return partition_groups(graph, groups.of, parts, allowed, seed);
}

}  // namespace cgcn
