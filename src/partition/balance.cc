// Clusters within their bounds: nodes leave those that are above, the ones that lose least first.
#include <numeric>
#include <tuple>

#include "common/random.h"
#include "partition/node_rating.h"

namespace cgcn {
namespace {

// A node that must leave its cluster.
struct Leaver {
  uint32_t from;
  int64_t loss;
  NodeId node;
  uint32_t to;
  auto key() const { return std::tuple(loss, node); }
};

class Balancer {
 public:
  Balancer(const LevelGraph& graph, Clusters& clusters, uint64_t seed, std::span<uint8_t> moved)
      : graph_(graph), clusters_(clusters), seed_(seed), moved_(moved) {}

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

  // Every node of an overloaded cluster, with the cluster that has room to which it has the heaviest edges; kNoNode
  // if none has.
  void find_leavers() {
    std::vector<std::vector<Leaver>> found(count_blocks(clusters_.of.size()));
    rate_nodes(
        graph_, clusters_, [&](NodeId v) { return clusters_.overloaded(clusters_.of[v]); },
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
    sort_leavers(found);
  }

  // By cluster, and in each by what they lose.
  void sort_leavers(const std::vector<std::vector<Leaver>>& found) {
    constexpr size_t kSortedClusters = 16;
    std::vector<size_t> ends(size_t{clusters_.count} + 1, 0);
    for (const auto& block : found)
      for (const Leaver& leaver : block) ++ends[size_t{leaver.from} + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    leavers_.resize(ends.back());
    for (const auto& block : found)
      for (const Leaver& leaver : block) leavers_[ends[leaver.from]++] = leaver;
    parallel_blocks(clusters_.count, kSortedClusters, [&](size_t begin, size_t end) {
      for (size_t c = begin; c < end; ++c)
        std::sort(leavers_.begin() + static_cast<ptrdiff_t>(c == 0 ? 0 : ends[c - 1]),
                  leavers_.begin() + static_cast<ptrdiff_t>(ends[c]),
                  [](const Leaver& a, const Leaver& b) { return a.key() < b.key(); });
    });
  }

  // Lightest loss first, until the cluster is within its bound. In the last round also to where there are no edges.
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
      if (!moved_.empty()) moved_[leaver.node] = 1;
    }
  }
  // The next cluster, round and round, that takes the node; kNoNode if none does.
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
  std::span<uint8_t> moved_;
  std::vector<Leaver> leavers_;
};

}  // namespace

void Clusters::weigh(const LevelGraph& graph) {
  for (size_t c = 0; c < graph.num_constraints; ++c) {
    weight[c].assign(count, 0);
    for (size_t v = 0; v < of.size(); ++v) weight[c][of[v]] += graph.node_weight(static_cast<NodeId>(v), c);
  }
}

bool rebalance(const LevelGraph& graph, Clusters& clusters, uint64_t seed, std::span<uint8_t> moved) {
  return Balancer(graph, clusters, seed, moved).run();
}

}  // namespace cgcn
