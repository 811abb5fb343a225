#include "partition/multilevel.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "common/interrupt.h"
#include "common/progress.h"
#include "common/threads.h"
#include "partition/initial_partition.h"
#include "partition/label_propagation.h"
#include "partition/refinement.h"

namespace cgcn {
namespace {

// Settings, from measurements on the shapes of docs/partition.md.
constexpr uint32_t kDirectParts = 64;      // below: METIS finds the clusters themselves on the coarsest graph
constexpr uint32_t kPartsPerGroup = 32;    // else groups of so many clusters
constexpr double kLeastPerCluster = 10;    // at least, on the level that is split into clusters
constexpr double kNodesPerGroup = 40;      // at least, on the coarsest
constexpr NodeId kEnoughNodes = 2000;      // no coarser than this
constexpr double kCoarsening = 16;         // how much heavier the nodes of the next level may be
constexpr double kLeastCoarsening = 0.85;  // a level with more of the nodes below than this is not worth it
constexpr double kGroupImbalance = 1.01;

constexpr uint64_t kManyEntries = uint64_t{1} << 24;

MultilevelEffort effort_on_level(MultilevelEffort effort, uint64_t entries) {
  if (entries < kManyEntries) return effort;
  effort.clustering_rounds = (effort.clustering_rounds + 1) / 2;
  effort.refinement.jet_iterations = (effort.refinement.jet_iterations + 2) / 3;
  return effort;
}

class Multilevel {
 public:
  Multilevel(LevelGraph graph, uint32_t parts, const PartitionOptions& options, const MultilevelEffort& effort)
      : parts_(parts), options_(options), effort_(effort), progress_("multilevel partition") {
    const LevelGraph& finest = add_level(std::move(graph), /*most_weight=*/1, /*seconds=*/0).graph;
    for (size_t c = 0; c < finest.num_constraints; ++c) total_[c] = finest.total_weight(c);
    mean_ = static_cast<double>(total_[0]) / parts;
    groups_ = parts < kDirectParts ? parts : parts / kPartsPerGroup;
  }

  MultilevelRun run() {
    coarsen();
    Clusters clusters = partition_coarsest();
    size_t level = levels_.size() - 1;
    for (;; --level) {
      if (clusters.count < parts_ && level == split_level_) split(level, clusters);
      refine(level, clusters);
      if (level == 0) break;
      project(level, clusters);
    }
    fill_empty(clusters);
    MultilevelRun run;
    run.clusters = std::move(clusters.of);
    run.metis_peak_rss = metis_peak_;
    for (const Level& each : levels_) run.levels.push_back(each.figures);
    return run;
  }

 private:
  struct Level {
    LevelGraph graph;
    Buffer<NodeId> parent;  // the node of the next level that each node is in
    LevelFigures figures;
  };

  Level& add_level(LevelGraph graph, uint64_t most_weight, double seconds) {
    Level& level = levels_.emplace_back();
    level.graph = std::move(graph);
    level.figures.nodes = level.graph.num_nodes();
    level.figures.entries = level.graph.num_entries();
    level.figures.most_weight = most_weight;
    level.figures.coarsen_seconds = seconds;
    return level;
  }

  void note(size_t level, const char* what) {
    progress_.set_note(fmt::format("level {}: {} nodes, {}", level, format_count(levels_[level].figures.nodes), what));
  }

  // Level by level with heavier nodes: first up to a share of a cluster, which gives the level that is split into
  // clusters, then up to a share of a group.
  void coarsen() {
    const double enough = std::max<double>(kNodesPerGroup * groups_, kEnoughNodes);
    double most = 1;
    const auto coarsen_to = [&](double ceiling) {
      while (levels_.back().graph.num_nodes() > enough) {
        const double next = std::min(ceiling, most * kCoarsening);
        if (next < 2 || next < 1.5 * most || !add_level(static_cast<uint64_t>(next))) return;
        most = next;
      }
    };
    if (groups_ < parts_) coarsen_to(mean_ / kLeastPerCluster);
    split_level_ = levels_.size() - 1;
    coarsen_to(static_cast<double>(total_[0]) / groups_ / kNodesPerGroup);
  }

  bool add_level(uint64_t most_weight) {
    const Timer timer;
    Level& below = levels_.back();
    note(levels_.size() - 1, "coarsening");
    ClusteringLimits limits;
    limits.seed = options_.seed + levels_.size();
    limits.rounds = effort_on_level(effort_, below.figures.entries).clustering_rounds;
    limits.most_weight[0] = most_weight;
    if (below.graph.num_constraints > 1)  // labelled nodes in proportion, and some slack: they may be few
      limits.most_weight[1] =
          std::max<uint64_t>(1, static_cast<uint64_t>(2.0 * static_cast<double>(most_weight) *
                                                      static_cast<double>(total_[1]) / static_cast<double>(total_[0])));
    Clustering clustering = propagate_labels(below.graph, limits);
    if (clustering.num_clusters > kLeastCoarsening * static_cast<double>(below.figures.nodes)) return false;
    LevelGraph coarse = contract(below.graph, clustering.cluster_of, clustering.num_clusters);
    below.parent = std::move(clustering.cluster_of);
    add_level(std::move(coarse), most_weight, timer.seconds());
    return true;
  }
  Clusters partition_coarsest() {
    Level& level = levels_.back();
    note(levels_.size() - 1, "METIS");
    const float imbalance = groups_ < parts_ ? static_cast<float>(kGroupImbalance) : options_.imbalance;
    MetisRun run = partition_level(level.graph, groups_, imbalance, options_.seed);
    Clusters clusters;
    clusters.of = std::move(run.clusters);
    clusters.count = groups_;
    clusters.weigh(level.graph);
    take(level, run);
    return clusters;
  }

  void take(Level& level, const MetisRun& run) {
    level.figures.partition_seconds += run.seconds;
    metis_peak_ = std::max(metis_peak_, run.peak_rss);
  }

  // Every group becomes as many clusters as its weight asks for.
  void split(size_t at, Clusters& clusters) {
    Level& level = levels_[at];
    note(at, "METIS");
    const std::vector<uint32_t> parts = share_parts(clusters);
    std::vector<uint32_t> first(parts.size());
    std::exclusive_scan(parts.begin(), parts.end(), first.begin(), 0u);
    MetisRun run = split_groups(level.graph, clusters, parts, options_.imbalance, options_.seed + 1);
    for (size_t v = 0; v < run.clusters.size(); ++v) clusters.of[v] = first[clusters.of[v]] + run.clusters[v];
    clusters.count = parts_;
    clusters.weigh(level.graph);
    take(level, run);
  }

  // Parts for each group by its weight (largest remainders), at least one and no more than it has nodes.
  std::vector<uint32_t> share_parts(const Clusters& groups) const {
    std::vector<uint64_t> nodes(groups.count, 0);
    for (const uint32_t group : groups.of) ++nodes[group];
    std::vector<uint32_t> parts(groups.count);
    std::vector<std::pair<double, uint32_t>> order(groups.count);  // who gets one more, who gives one up
    uint64_t given = 0;
    for (uint32_t g = 0; g < groups.count; ++g) {
      const double share = static_cast<double>(groups.weight[0][g]) / mean_;
      parts[g] =
          static_cast<uint32_t>(std::clamp<uint64_t>(static_cast<uint64_t>(share), nodes[g] > 0 ? 1 : 0, nodes[g]));
      given += parts[g];
      order[g] = {parts[g] - share, g};
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; given < parts_; i = (i + 1) % order.size())
      if (const uint32_t g = order[i].second; parts[g] < nodes[g]) {
        ++parts[g];
        ++given;
      }
    for (size_t i = order.size() - 1; given > parts_; i = (i + order.size() - 1) % order.size())
      if (const uint32_t g = order[i].second; parts[g] > 1) {
        --parts[g];
        --given;
      }
    return parts;
  }

  void project(size_t level, Clusters& clusters) {
    const Level& below = levels_[level - 1];
    Buffer<uint32_t> of(below.parent.size());
    parallel_blocks(of.size(), size_t{1} << 16, [&](size_t begin, size_t end) {
      for (size_t v = begin; v < end; ++v) of[v] = clusters.of[below.parent[v]];
    });
    clusters.of = std::move(of);
    levels_[level].graph = {};
    levels_[level - 1].parent = {};
  }

  // The bound for clusters or groups. On coarse levels a node's weight is allowed on top: it is given back further
  // down.
  void set_bounds(size_t level, Clusters& clusters) const {
    const LevelGraph& graph = levels_[level].graph;
    for (size_t c = 0; c < graph.num_constraints; ++c) {
      const double mean = static_cast<double>(total_[c]) / clusters.count;
      const double imbalance = clusters.count < parts_ ? kGroupImbalance : double{options_.imbalance};
      const double slack = level == 0 ? 0 : 0.5 * static_cast<double>(levels_[level].figures.most_weight);
      clusters.most[c] = static_cast<uint64_t>(std::max(std::ceil(mean), imbalance * mean + slack));
    }
  }

  void refine(size_t at, Clusters& clusters) {
    const Timer timer;
    Level& level = levels_[at];
    note(at, "refining");
    set_bounds(at, clusters);
    rebalance(level.graph, clusters, options_.seed);
    const RefinementEffort effort = effort_on_level(effort_, level.figures.entries).refinement;
    level.figures.cut = cgcn::refine(level.graph, clusters, effort, options_.seed);
    level.figures.refine_seconds = timer.seconds();
  }

  // No cluster stays empty: it takes a node of the largest.
  void fill_empty(Clusters& clusters) const {
    std::vector<uint64_t> nodes(clusters.count, 0);
    for (const uint32_t cluster : clusters.of) ++nodes[cluster];
    std::vector<uint32_t> empty;
    for (uint32_t c = 0; c < clusters.count; ++c)
      if (nodes[c] == 0) empty.push_back(c);
    while (!empty.empty()) {
      const uint64_t most = *std::max_element(nodes.begin(), nodes.end());
      if (most < 2) return;
      for (size_t v = clusters.of.size(); v-- > 0 && !empty.empty();) {
        const uint32_t from = clusters.of[v];
        if (nodes[from] < most) continue;
        --nodes[from];
        ++nodes[empty.back()];
        clusters.move(levels_[0].graph, static_cast<NodeId>(v), empty.back());
        empty.pop_back();
      }
    }
  }

  uint32_t parts_, groups_ = 0;
  const PartitionOptions& options_;
  const MultilevelEffort& effort_;
  std::vector<Level> levels_;
  size_t split_level_ = 0;
  std::array<uint64_t, kMostConstraints> total_{};
  double mean_ = 0;
  uint64_t metis_peak_ = 0;
  Progress progress_;
};

}  // namespace

nlohmann::json LevelFigures::to_json() const {
  return {{"nodes", nodes},
          {"entries", entries},
          {"most_weight", most_weight},
          {"coarsen_seconds", coarsen_seconds},
          {"partition_seconds", partition_seconds},
          {"refine_seconds", refine_seconds},
          {"cut_entries", cut}};
}

MultilevelRun partition_multilevel(LevelGraph graph, uint32_t parts, const PartitionOptions& options,
                                   const MultilevelEffort& effort) {
  return Multilevel(std::move(graph), parts, options, effort).run();
}

}  // namespace cgcn
