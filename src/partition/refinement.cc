// Jet moves nodes where they have more edges, and a little further; greedy moves then take what is left.
//
// Each node's best other cluster is kept from one pass to the next and found again only if the node or a neighbour
// has moved. That changes nothing in the result.
#include "partition/refinement.h"

#include <atomic>
#include <numeric>

#include "partition/node_rating.h"

namespace cgcn {
namespace {

constexpr double kTemperature = 0.25;  // how much of its edges to its own cluster a node may lose in a move

class Refinement {
 public:
  Refinement(const LevelGraph& graph, Clusters& clusters, uint64_t seed)
      : graph_(graph),
        clusters_(clusters),
        seed_(seed),
        plan_(clusters.of.size()),
        outside_(clusters.of.size(), 0),
        stale_(clusters.of.size(), 1),
        moved_(clusters.of.size(), 0),
        locked_(clusters.of.size(), 0) {}

  void run_jet(uint32_t iterations) {
    Buffer<uint32_t> best(clusters_.of.size());
    std::pair<bool, uint64_t> best_state;  // whether a cluster is above its bound; weight between clusters
    bool overloaded = false;
    for (uint32_t c = 0; c < clusters_.count; ++c) overloaded = overloaded || clusters_.overloaded(c);
    for (uint32_t i = 0; i <= iterations; ++i) {
      const std::pair<bool, uint64_t> state{overloaded, choose()};  // before this iteration
      if (i == 0 || state < best_state) {
        std::copy(clusters_.of.begin(), clusters_.of.end(), best.begin());
        best_state = state;
      }
      if (i == iterations) break;
      const uint64_t moved = move_together();
      overloaded = !rebalance(graph_, clusters_, seed_ + i, moved_);
      mark_stale();
      if (moved < clusters_.of.size() / 500) iterations = i + 1;  // only to see the result
    }
    for (size_t v = 0; v < best.size(); ++v) moved_[v] = best[v] != clusters_.of[v] ? 1 : 0;
    clusters_.of = std::move(best);
    clusters_.weigh(graph_);
    mark_stale();
  }

  // Nodes that would have more edges elsewhere, one after the other: each move makes the cut smaller.
  void run_greedy(uint32_t rounds) {
    for (uint32_t round = 0; round < rounds; ++round) {
      choose();
      uint64_t moved = 0;
      graph_.with_weights([&](auto weight_of) {
        for_each_stretch(clusters_.of.size(), kStretch, [&](size_t first, size_t last) {
          for (size_t v = first; v < last; ++v)
            if (plan_[v].to != kNoNode && plan_[v].gain > 0) moved += move_if_better(static_cast<NodeId>(v), weight_of);
          graph_.release_rows(first, last);
        });
      });
      if (moved == 0) return;
      mark_stale();
    }
  }

  // Weight of the entries between clusters. Finds where each node would go on its own.
  uint64_t choose() {
    std::vector<uint64_t> cut(count_blocks(clusters_.of.size()), 0);
    rate_nodes(
        graph_, clusters_, [&](NodeId v) { return stale_[v] != 0; },
        [&](NodeId v, const RatingTable& table, uint32_t own) { plan(v, table, own); });
    parallel_blocks(clusters_.of.size(), kDecidedNodes, [&](size_t begin, size_t end) {
      for (size_t v = begin; v < end; ++v) {
        cut[begin / kDecidedNodes] += outside_[v];
        stale_[v] = 0;
      }
    });
    return std::accumulate(cut.begin(), cut.end(), uint64_t{0});
  }

 private:
  struct Plan {
    uint32_t to;  // kNoNode: stays
    int32_t gain;
  };

  void plan(NodeId v, const RatingTable& table, uint32_t own) {
    uint32_t best = kNoNode, best_weight = 0;
    uint64_t outside = 0;
    for (size_t i = 0; i < table.size(); ++i) {
      const auto [cluster, weight] = table[i];
      if (cluster == clusters_.of[v]) continue;
      outside += weight;
      if (weight < best_weight || (weight == best_weight && cluster > best)) continue;
      best = cluster;
      best_weight = weight;
    }
    const int64_t gain = int64_t{best_weight} - int64_t{own};
    outside_[v] = static_cast<uint32_t>(std::min<uint64_t>(outside, UINT32_MAX));
    plan_[v] = {static_cast<double>(-gain) > kTemperature * own ? kNoNode : best,
                static_cast<int32_t>(std::clamp<int64_t>(gain, INT32_MIN, INT32_MAX))};
  }

  // A node that has just moved stays for one iteration.
  bool is_going(NodeId v) const { return plan_[v].to != kNoNode && locked_[v] == 0; }

  // Whether v does not lose when the neighbours that gain more have moved before it.
  template <class WeightOf>
  bool still_gains(NodeId v, WeightOf&& weight_of) const {
    const Plan plan = plan_[v];
    int64_t gain = 0;
    for (EdgeOffset e = graph_.row_begin(v); e < graph_.row_end(v); ++e) {
      const NodeId u = graph_.target(e);
      if (u == kNoNode || u == v) continue;
      const Plan other = plan_[u];
      const bool before = (other.gain > plan.gain || (other.gain == plan.gain && u < v)) && is_going(u);
      const uint32_t there = before ? other.to : clusters_.of[u];
      if (there == plan.to) gain += weight_of(e);
      if (there == clusters_.of[v]) gain -= weight_of(e);
    }
    return gain >= 0;
  }

  // Nodes whose gain holds when those that gain more have moved, go. Returns how many.
  uint64_t move_together() {
    graph_.with_weights([&](auto weight_of) {
      for_each_block(graph_, clusters_.of.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const auto v = static_cast<NodeId>(i);
          moved_[i] = is_going(v) && still_gains(v, weight_of) ? 1 : 0;
        }
      });
    });
    uint64_t moved = 0;
    for (size_t v = 0; v < moved_.size(); ++v) {
      locked_[v] = moved_[v];
      if (moved_[v] == 0) continue;
      clusters_.move(graph_, static_cast<NodeId>(v), plan_[v].to);
      ++moved;
    }
    return moved;
  }

  template <class WeightOf>
  bool move_if_better(NodeId v, WeightOf&& weight_of) {
    RatingTable& table = rating_table();
    table.begin(std::min<uint64_t>(graph_.degree(v), clusters_.count));
    add_neighbours(graph_, v, clusters_.of.data(), weight_of, table);
    uint32_t best = kNoNode, best_weight = table.weight_of(clusters_.of[v]);
    for (size_t i = 0; i < table.size(); ++i) {
      const auto [cluster, weight] = table[i];
      if (weight <= best_weight || !clusters_.fits(graph_, v, cluster)) continue;
      best = cluster;
      best_weight = weight;
    }
    if (best == kNoNode) return false;
    clusters_.move(graph_, v, best);
    moved_[v] = 1;
    return true;
  }

  // What moved, and what is linked to it, is looked at again.
  void mark_stale() {
    for_each_block(graph_, moved_.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        if (moved_[i] == 0) continue;
        moved_[i] = 0;
        const auto v = static_cast<NodeId>(i);
        std::atomic_ref(stale_[i]).store(1, std::memory_order_relaxed);
        for (EdgeOffset e = graph_.row_begin(v); e < graph_.row_end(v); ++e)
          if (const NodeId u = graph_.target(e); u != kNoNode)
            std::atomic_ref(stale_[u]).store(1, std::memory_order_relaxed);
      }
    });
  }

  const LevelGraph& graph_;
  Clusters& clusters_;
  uint64_t seed_;
  Buffer<Plan> plan_;         // the best other cluster, whether it has room or not
  Buffer<uint32_t> outside_;  // weight of the edges to other clusters
  Buffer<uint8_t> stale_;     // plan_ and outside_ are to be found again
  Buffer<uint8_t> moved_, locked_;
};

}  // namespace

uint64_t refine(const LevelGraph& graph, Clusters& clusters, const RefinementEffort& effort, uint64_t seed) {
  Refinement refinement(graph, clusters, seed);
  refinement.run_jet(effort.jet_iterations);
  refinement.run_greedy(effort.greedy_rounds);
  return refinement.choose();
}

}  // namespace cgcn
