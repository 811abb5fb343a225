#include "partition/label_propagation.h"

#include <numeric>

#include "common/interrupt.h"
#include "common/random.h"
#include "common/threads.h"
#include "partition/batches.h"
#include "partition/rating_table.h"

namespace cgcn {
namespace {

constexpr uint64_t kMostRated = 4096;  // neighbours of a hub that are looked at

class LabelPropagation {
 public:
  LabelPropagation(const LevelGraph& graph, const ClusteringLimits& limits)
      : graph_(graph), limits_(limits), label_(graph.num_nodes()), wish_(batch_size(graph.num_nodes())) {
    for (size_t c = 0; c < graph.num_constraints; ++c) {
      weight_[c] = Buffer<uint32_t>(label_.size());
      limits_.most_weight[c] = std::min<uint64_t>(limits_.most_weight[c], UINT32_MAX);  // so that no sum overflows
    }
    parallel_blocks(label_.size(), size_t{1} << 16, [&](size_t begin, size_t end) {
      for (size_t v = begin; v < end; ++v) {
        label_[v] = static_cast<NodeId>(v);
        for (size_t c = 0; c < graph.num_constraints; ++c) weight_[c][v] = graph.node_weight(static_cast<NodeId>(v), c);
      }
    });
  }

  Clustering run() {
    for (uint32_t round = 0; round < limits_.rounds; ++round) {
      const uint64_t moved = run_round(round);
      if (moved < label_.size() / 50) break;
    }
    join_leftovers();
    return number_clusters();
  }

 private:
  bool fits(NodeId label, NodeId v) const {
    for (size_t c = 0; c < graph_.num_constraints; ++c)
      if (uint64_t{weight_[c][label]} + graph_.node_weight(v, c) > limits_.most_weight[c]) return false;
    return true;
  }
  bool is_alone(NodeId v) const {
    return label_[v] == v && weight_[0][v] == graph_.node_weight(v) &&
           (graph_.num_constraints == 1 || weight_[1][v] == graph_.node_weight(v, 1));
  }
  void move(NodeId v, NodeId label) {
    for (size_t c = 0; c < graph_.num_constraints; ++c) {
      weight_[c][label_[v]] -= graph_.node_weight(v, c);
      weight_[c][label] += graph_.node_weight(v, c);
    }
    label_[v] = label;
  }

  template <class WeightOf>
  void rate(NodeId v, WeightOf&& weight_of, RatingTable& table) const {
    table.begin(std::min(graph_.degree(v), kMostRated));
    add_neighbours(graph_, v, label_.data(), weight_of, table, kMostRated);
  }

  // The heaviest cluster around v that has room for it, its own among them; ties are broken by a hash.
  NodeId best_label(NodeId v, const RatingTable& table, uint32_t salt) const {
    const NodeId own = label_[v];
    NodeId best = own;
    uint32_t best_weight = 0, best_hash = 0;
    for (size_t i = 0; i < table.size(); ++i) {
      const auto [label, weight] = table[i];
      if (weight < best_weight) continue;
      const uint32_t hash = mix32(label ^ salt);
      if (weight == best_weight && hash <= best_hash) continue;
      if (label != own && !fits(label, v)) continue;
      best = label;
      best_weight = weight;
      best_hash = hash;
    }
    return best;
  }

  uint64_t run_round(uint32_t round) {
    uint64_t moved = 0;
    const uint32_t salt = Random(limits_.seed, Purpose::kPartition, 2, round).next();
    graph_.with_weights([&](auto weight_of) {
      for_each_batch(label_.size(), [&](size_t first, size_t last) {
        parallel_blocks(last - first, kDecidedNodes, [&](size_t begin, size_t end) {
          RatingTable& table = rating_table();
          for (size_t i = begin; i < end; ++i) {
            const auto v = static_cast<NodeId>(first + i);
            if (i + 2 < end) prefetch_groups(graph_, v + 2, label_.data());
            rate(v, weight_of, table);
            wish_[i] = best_label(v, table, salt ^ mix32(v));
          }
        });
        graph_.release_rows(first, last);
        for (size_t i = 0; i < last - first; ++i) {
          const auto v = static_cast<NodeId>(first + i);
          // A cluster that everyone has left in this batch stays empty: two nodes that wish to join each other meet.
          if (wish_[i] == label_[v] || weight_[0][wish_[i]] == 0 || !fits(wish_[i], v)) continue;
          move(v, wish_[i]);
          ++moved;
        }
      });
    });
    return moved;
  }

  // Nodes that found no cluster with room: the leaves of a star, isolated nodes. Those that would have joined the same
  // cluster join each other (two-hop clustering).
  void join_leftovers() {
    const size_t n = label_.size();
    Buffer<NodeId> open(n, kNoNode);  // by favourite cluster: the node whose cluster is being filled
    NodeId open_isolated = kNoNode;
    graph_.with_weights([&](auto weight_of) {
      for_each_batch(n, [&](size_t first, size_t last) {
        parallel_blocks(last - first, kDecidedNodes, [&](size_t begin, size_t end) {
          RatingTable& table = rating_table();
          for (size_t i = begin; i < end; ++i) {
            const auto v = static_cast<NodeId>(first + i);
            wish_[i] = kNoNode;
            if (!is_alone(v)) continue;
            rate(v, weight_of, table);
            uint32_t most = 0;
            for (size_t k = 0; k < table.size(); ++k)
              if (table[k].weight > most) {
                most = table[k].weight;
                wish_[i] = table[k].key;
              }
          }
        });
        graph_.release_rows(first, last);
        for (size_t i = 0; i < last - first; ++i) {
          const auto v = static_cast<NodeId>(first + i);
          if (!is_alone(v)) continue;
          NodeId& place = wish_[i] == kNoNode ? open_isolated : open[wish_[i]];
          if (place != kNoNode && label_[place] == place && fits(place, v) && place != v)
            move(v, place);
          else
            place = v;
        }
      });
    });
  }

  Clustering number_clusters() {
    Clustering clustering;
    Buffer<NodeId> number(label_.size(), kNoNode);
    for (const NodeId label : label_)
      if (number[label] == kNoNode) number[label] = clustering.num_clusters++;
    for (NodeId& label : label_) label = number[label];
    clustering.cluster_of = std::move(label_);
    return clustering;
  }

  const LevelGraph& graph_;
  ClusteringLimits limits_;
  Buffer<NodeId> label_, wish_;                            // wish_: of a batch
  std::array<Buffer<uint32_t>, kMostConstraints> weight_;  // by label
};

}  // namespace

Clustering propagate_labels(const LevelGraph& graph, const ClusteringLimits& limits) {
  return LabelPropagation(graph, limits).run();
}

}  // namespace cgcn
