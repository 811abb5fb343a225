#include "partition/initial_partition.h"

#include <numeric>

#include "common/error.h"
#include "common/progress.h"

namespace cgcn {
namespace {

// A group's nodes stand together: group g has nodes order[starts[g]] … order[starts[g + 1]); place is the inverse of
// order.
struct Groups {
  Groups(std::span<const uint32_t> group_of, size_t count)
      : starts(count + 1, 0), order(group_of.size()), place(group_of.size()) {
    for (const uint32_t group : group_of) ++starts[size_t{group} + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    for (size_t v = 0; v < group_of.size(); ++v) {
      place[v] = static_cast<NodeId>(next[group_of[v]]++);
      order[place[v]] = static_cast<NodeId>(v);
    }
  }
  // Groups from `first` on that METIS gets together: what it is given is in memory a second time.
  size_t end_of_batch(const LevelGraph& graph, size_t first) const {
    constexpr uint64_t kEntriesAtOnce = uint64_t{1} << 26;
    uint64_t entries = 0;
    size_t group = first;
    for (; group + 1 < starts.size(); ++group) {
      for (size_t i = starts[group]; i < starts[group + 1]; ++i) entries += graph.degree(order[i]);
      if (group > first && entries > kEntriesAtOnce) break;
    }
    return group;
  }

  std::vector<size_t> starts;
  Buffer<NodeId> order, place;
};

// METIS adds up weights in 32 bits.
double fit_metis(double total) { return total < INT32_MAX ? 1 : (INT32_MAX - 1) / total; }

int32_t shrink_weight(uint32_t weight, double scale) {
  return std::max(1, static_cast<int32_t>(std::min<double>(weight * scale, INT32_MAX)));
}

// The edges within one group.
MetisGraph graph_of_group(const LevelGraph& graph, const Groups& groups, size_t group, uint32_t parts) {
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
      for (EdgeOffset e = graph.row_begin(v); e < graph.row_end(v); ++e) {
        const NodeId u = graph.target(e);
        if (u == v || u == kNoNode) continue;
        const size_t at = groups.place[u];
        if (at < begin || at >= end) continue;
        targets.push_back(static_cast<int32_t>(at - begin));
        weights.push_back(weight_of(e));
        total += weights.back();
      }
      if (targets.size() > INT32_MAX)
        throw Error(fmt::format("{} clusters are too large to be found at once: METIS counts to {} adjacency entries",
                                parts, format_count(INT32_MAX)),
                    "--parts", "more of them");
      metis.offsets[i - begin + 1] = static_cast<int32_t>(targets.size());
    }
  });
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
  MetisRun all{.clusters = Buffer<uint32_t>(group_of.size())};
  for (size_t first = 0; first < parts.size();) {
    const size_t last = groups.end_of_batch(graph, first);
    std::vector<size_t> starts(groups.starts.begin() + first, groups.starts.begin() + last + 1);
    for (size_t& start : starts) start -= groups.starts[first];
    const MetisRun run = run_metis_pieces(starts, parts.subspan(first, last - first), [&](size_t i) {
      MetisPiece piece;
      piece.graph = graph_of_group(graph, groups, first + i, parts[first + i]);
      piece.parts = parts[first + i];
      piece.options.seed = seed + first + i;
      piece.options.imbalance = imbalance[first + i];
      // k-way METIS tries four bisections for each that it keeps and refines what is refined here.
      piece.options.method = PartitionMethod::kMetisRecursive;
      return piece;
    });
    for (size_t i = 0; i < run.clusters.size(); ++i)
      all.clusters[groups.order[groups.starts[first] + i]] = run.clusters[i];
    all.seconds += run.seconds;
    all.peak_rss = std::max(all.peak_rss, run.peak_rss);
    first = last;
  }
  return all;
}

}  // namespace

MetisRun partition_level(const LevelGraph& graph, uint32_t parts, float imbalance, uint64_t seed) {
  const Buffer<uint32_t> all(graph.num_nodes(), 0);
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
