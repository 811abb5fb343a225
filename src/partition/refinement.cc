#include "partition/refinement.h"

#include <numeric>

#include "common/random.h"
#include "common/threads.h"
#include "partition/batches.h"
#include "partition/rating_table.h"

namespace cgcn {
namespace {

// Weight of v's links to its own cluster, and the table of all.
template <class WeightOf>
uint32_t rate_clusters(const LevelGraph& graph, std::span<const uint32_t> of, NodeId v, uint32_t count,
                       WeightOf&& weight_of, RatingTable& table) {
  rate_neighbours(graph, v, of.data(), weight_of, table, count);
  return table.weight_of(of[v]);
}

// Runs decide(v, table, weight to its own cluster) for every node of the range for which wanted(v); on all threads.
template <class Wanted, class Decide>
void rate_nodes(const LevelGraph& graph, const Clusters& clusters, size_t first, size_t last, Wanted&& wanted,
                Decide&& decide) {
  graph.with_weights([&](auto weight_of) {
    parallel_blocks(last - first, kDecidedNodes, [&](size_t begin, size_t end) {
      RatingTable& table = rating_table();
      for (size_t i = first + begin; i < first + end; ++i) {
        const auto v = static_cast<NodeId>(i);
        if (i + 2 < first + end && wanted(v + 2)) prefetch_groups(graph, v + 2, clusters.of.data());
        if (!wanted(v)) continue;
        const uint32_t own = rate_clusters(graph, clusters.of, v, clusters.count, weight_of, table);
        decide(v, table, own);
      }
      graph.release_rows(first + begin, first + end);
    });
  });
}

// A node that must leave its cluster.
struct Leaver {
  uint32_t from;
  int64_t loss;
  NodeId node;
  uint32_t to;
  auto key() const { return std::tuple(from, loss, node); }
};

class Balancer {
 public:
  Balancer(const LevelGraph& graph, Clusters& clusters, uint64_t seed)
      : graph_(graph), clusters_(clusters), seed_(seed) {}

  bool run() {
    constexpr uint32_t kRounds = 6;
    for (uint32_t round = 0; round < kRounds; ++round) {
      throw_if_interrupted();
      if (!any_overloaded()) return true;
      find_leavers();
      let_leave(round + 1 == kRounds);
    }
    return !any_overloaded();
  }

 private:
  bool any_overloaded() const {
    for (uint32_t c = 0; c < clusters_.count; ++c)
      if (clusters_.overloaded(c)) return true;
    return false;
  }

  // Every node of an overloaded cluster, with the cluster that has room to which it has the heaviest links; kNoNode
  // where none has.
  void find_leavers() {
    leavers_.clear();
    std::vector<std::vector<Leaver>> found((clusters_.of.size() + kDecidedNodes - 1) / kDecidedNodes);
    rate_nodes(
        graph_, clusters_, 0, clusters_.of.size(),
        [&](NodeId v) { return clusters_.of[v] != kNoNode && clusters_.overloaded(clusters_.of[v]); },
        [&](NodeId v, const RatingTable& table, uint32_t own) {
          uint32_t best = kNoNode, best_weight = 0;
          for (size_t i = 0; i < table.size(); ++i) {
            const auto [cluster, weight] = table[i];
            if (cluster == clusters_.of[v] || weight < best_weight || (weight == best_weight && cluster > best))
              continue;
            if (!clusters_.fits(graph_, v, cluster)) continue;
            best = cluster;
            best_weight = weight;
          }
          found[v / kDecidedNodes].push_back({clusters_.of[v], int64_t{own} - int64_t{best_weight}, v, best});
        });
    for (const auto& block : found) leavers_.insert(leavers_.end(), block.begin(), block.end());
    std::sort(leavers_.begin(), leavers_.end(), [](const Leaver& a, const Leaver& b) { return a.key() < b.key(); });
  }

  // Lightest loss first, until the cluster is within its bound. In the last round also to where there are no links.
  void let_leave(bool anywhere) {
    uint32_t roomy = Random(seed_, Purpose::kPartition, 4).below(clusters_.count);
    for (const Leaver& leaver : leavers_) {
      if (!clusters_.overloaded(leaver.from)) continue;
      uint32_t to = leaver.to;
      if (to == kNoNode || !clusters_.fits(graph_, leaver.node, to)) {
        if (!anywhere && to != kNoNode) continue;
        to = find_room(leaver.node, roomy);
        if (to == kNoNode) continue;
      }
      clusters_.move(graph_, leaver.node, to);
    }
  }
  // The next cluster, round and round, that takes the node; kNoNode where none does.
  uint32_t find_room(NodeId v, uint32_t& roomy) const {
    for (uint32_t tried = 0; tried < clusters_.count; ++tried) {
      if (clusters_.fits(graph_, v, roomy)) return roomy;
      roomy = roomy + 1 == clusters_.count ? 0 : roomy + 1;
    }
    return kNoNode;
  }

  const LevelGraph& graph_;
  Clusters& clusters_;
  uint64_t seed_;
  std::vector<Leaver> leavers_;
};

}  // namespace

void Clusters::weigh(const LevelGraph& graph) {
  for (size_t c = 0; c < graph.num_constraints; ++c) {
    weight[c].assign(count, 0);
    for (size_t v = 0; v < of.size(); ++v)
      if (of[v] != kNoNode) weight[c][of[v]] += graph.node_weight(static_cast<NodeId>(v), c);
  }
}

bool rebalance(const LevelGraph& graph, Clusters& clusters, uint64_t seed) {
  return Balancer(graph, clusters, seed).run();
}

namespace {

constexpr double kTemperature = 0.25;  // how much of its links to its own cluster a node may lose in a move

class Jet {
 public:
  Jet(const LevelGraph& graph, Clusters& clusters, uint64_t seed)
      : graph_(graph), clusters_(clusters), seed_(seed), plan_(clusters.of.size()), locked_(clusters.of.size(), 0) {}

  // Returns the weight of the entries between clusters.
  uint64_t run(uint32_t iterations) {
    Buffer<uint32_t> best(clusters_.of.size());
    std::pair<bool, uint64_t> best_state;  // whether a cluster is above its bound; weight between clusters
    bool overloaded = false;
    for (uint32_t c = 0; c < clusters_.count; ++c) overloaded = overloaded || clusters_.overloaded(c);
    for (uint32_t i = 0; i <= iterations; ++i) {
      throw_if_interrupted();
      const std::pair<bool, uint64_t> state{overloaded, choose()};  // before this iteration
      if (i == 0 || state < best_state) {
        std::copy(clusters_.of.begin(), clusters_.of.end(), best.begin());
        best_state = state;
      }
      if (i == iterations) break;
      const uint64_t moved = move_together();
      overloaded = !rebalance(graph_, clusters_, seed_ + i);
      if (moved < clusters_.of.size() / 500) iterations = i + 1;  // only to see what came of it
    }
    clusters_.of = std::move(best);
    clusters_.weigh(graph_);
    return best_state.second;
  }

 private:
  struct Plan {
    uint32_t to;  // kNoNode: stays
    int32_t gain;
  };

  // Where each node would go on its own. Returns the weight of the entries between clusters.
  uint64_t choose() {
    std::vector<uint64_t> cut((clusters_.of.size() + kDecidedNodes - 1) / kDecidedNodes, 0);
    rate_nodes(
        graph_, clusters_, 0, clusters_.of.size(), [&](NodeId v) { return clusters_.of[v] != kNoNode; },
        [&](NodeId v, const RatingTable& table, uint32_t own) {
          uint32_t best = kNoNode, best_weight = 0;
          for (size_t i = 0; i < table.size(); ++i) {
            const auto [cluster, weight] = table[i];
            if (cluster == clusters_.of[v]) continue;
            cut[v / kDecidedNodes] += weight;
            if (weight < best_weight || (weight == best_weight && cluster > best)) continue;
            best = cluster;
            best_weight = weight;
          }
          plan_[v].to = kNoNode;
          if (locked_[v] != 0) {  // it has just moved
            locked_[v] = 0;
            return;
          }
          const int64_t gain = int64_t{best_weight} - int64_t{own};
          if (best == kNoNode || static_cast<double>(-gain) > kTemperature * own) return;
          plan_[v] = {best, static_cast<int32_t>(std::clamp<int64_t>(gain, INT32_MIN, INT32_MAX))};
        });
    return std::accumulate(cut.begin(), cut.end(), uint64_t{0});
  }

  // Nodes whose gain holds when those that gain more have moved, go. Returns how many.
  uint64_t move_together() {
    const size_t n = clusters_.of.size();
    Buffer<uint8_t> goes(n, 0);
    graph_.with_weights([&](auto weight_of) {
      parallel_blocks(n, kDecidedNodes, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const auto v = static_cast<NodeId>(i);
          const Plan plan = plan_[v];
          if (clusters_.of[v] == kNoNode || plan.to == kNoNode) continue;
          int64_t gain = 0;
          for (EdgeOffset e = graph_.offsets[v]; e < graph_.offsets[size_t{v} + 1]; ++e) {
            const NodeId u = graph_.targets[e];
            uint32_t there = clusters_.of[u];
            if (there == kNoNode || u == v) continue;
            const Plan other = plan_[u];
            if (other.to != kNoNode && (other.gain > plan.gain || (other.gain == plan.gain && u < v))) there = other.to;
            if (there == plan.to) gain += weight_of(e);
            if (there == clusters_.of[v]) gain -= weight_of(e);
          }
          goes[v] = gain >= 0 ? 1 : 0;
        }
        graph_.release_rows(begin, end);
      });
    });
    uint64_t moved = 0;
    for (size_t v = 0; v < n; ++v) {
      if (goes[v] == 0) continue;
      clusters_.move(graph_, static_cast<NodeId>(v), plan_[v].to);
      locked_[v] = 1;
      ++moved;
    }
    return moved;
  }

  const LevelGraph& graph_;
  Clusters& clusters_;
  uint64_t seed_;
  Buffer<Plan> plan_;
  Buffer<uint8_t> locked_;
};

}  // namespace

uint64_t refine_jet(const LevelGraph& graph, Clusters& clusters, uint32_t iterations, uint64_t seed) {
  return Jet(graph, clusters, seed).run(iterations);
}

}  // namespace cgcn
