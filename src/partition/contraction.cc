// One node for each cluster of a level; edges between two clusters become one, their weights added; edges within fall
// away.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "common/interrupt.h"
#include "common/threads.h"
#include "partition/batches.h"
#include "partition/level_graph.h"
#include "partition/rating_table.h"

namespace cgcn {
namespace {

constexpr size_t kContractedRows = 1024;  // coarse nodes a thread takes at a time

// The nodes of each cluster, in rising order: cluster c has members[starts[c]] … members[starts[c + 1]].
struct Members {
  Members(std::span<const NodeId> cluster_of, NodeId num_clusters)
      : starts(size_t{num_clusters} + 1, 0), members(cluster_of.size()) {
    for (const NodeId cluster : cluster_of) ++starts[size_t{cluster} + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    Buffer<NodeId> next(num_clusters);
    std::copy_n(starts.begin(), num_clusters, next.begin());
    for (size_t v = 0; v < cluster_of.size(); ++v) members[next[cluster_of[v]]++] = static_cast<NodeId>(v);
  }
  std::span<const NodeId> of(size_t cluster) const {
    return {members.data() + starts[cluster], size_t{starts[cluster + 1]} - starts[cluster]};
  }
  Buffer<NodeId> starts, members;
};

}  // namespace

uint64_t LevelGraph::total_weight(size_t constraint) const {
  uint64_t total = 0;
  for (NodeId v = 0; v < num_nodes(); ++v) total += node_weight(v, constraint);
  return total;
}

namespace {

// The coarse rows of one stretch of clusters, and where they end.
struct ContractedRows {
  std::vector<NodeId> targets;
  std::vector<uint32_t> weights;

  // Edges in any order, each key << 32 | weight; the row gets one for each key, sorted. Returns its length.
  size_t append(std::vector<uint64_t>& links) {
    std::sort(links.begin(), links.end());
    const size_t before = targets.size();
    for (const uint64_t link : links) {
      const auto target = static_cast<NodeId>(link >> 32), weight = static_cast<uint32_t>(link);
      if (targets.size() == before || targets.back() != target) {
        targets.push_back(target);
        weights.push_back(weight);
      } else {
        const uint32_t sum = weights.back() + weight;
        weights.back() = sum < weight ? UINT32_MAX : sum;
      }
    }
    return targets.size() - before;
  }
};

constexpr uint64_t pack(NodeId target, uint32_t weight) { return uint64_t{target} << 32 | weight; }

class Contraction {
 public:
  Contraction(const LevelGraph& graph, std::span<const NodeId> cluster_of, NodeId num_clusters)
      : graph_(graph),
        cluster_of_(cluster_of),
        count_(num_clusters),
        offsets_(size_t{num_clusters} + 1),
        blocks_((num_clusters + kContractedRows - 1) / kContractedRows) {
    offsets_[0] = 0;
  }

  LevelGraph run() {
    if (graph_.streamed > 0)
      add_up_streamed();
    else
      add_up();
    throw_if_interrupted();
    return joined();
  }

 private:
  // Cluster by cluster, if rows can be read in any order.
  void add_up() {
    const Members members(cluster_of_, count_);
    graph_.with_weights([&](auto weight_of) {
      parallel_blocks(count_, kContractedRows, [&](size_t begin, size_t end) {
        RatingTable& table = rating_table();
        std::vector<uint64_t> links;
        for (size_t cluster = begin; cluster < end; ++cluster) {
          uint64_t entries = 0;
          for (const NodeId v : members.of(cluster)) entries += graph_.degree(v);
          table.begin(std::min<uint64_t>(entries, count_));
          for (const NodeId v : members.of(cluster)) add_neighbours(graph_, v, cluster_of_.data(), weight_of, table);
          links.clear();
          for (size_t i = 0; i < table.size(); ++i)
            if (table[i].key != cluster) links.push_back(pack(table[i].key, table[i].weight));
          offsets_[cluster + 1] = blocks_[begin / kContractedRows].append(links);
        }
      });
    });
  }

  // Calls use(cluster, other cluster, entry) for every edge between clusters, reading rows in the order in which they
  // are stored.
  template <class Use>
  void for_each_link(Use&& use) const {
    for_each_block(graph_, cluster_of_.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const NodeId own = cluster_of_[i];
        for_each_group(graph_, static_cast<uint32_t>(i), cluster_of_.data(), UINT64_MAX,
                       [&](NodeId other, EdgeOffset e) {
                         if (other != own) use(own, other, e);
                       });
      }
    });
  }

  // Stretches of clusters, as many edges at a time as the buffer holds: one pass over the graph for each. Edges of a
  // row come in any order, as threads have it, and are sorted.
  void add_up_streamed() {
    std::vector<std::atomic<uint64_t>> ends(size_t{count_} + 1);  // of each row, counted, then summed up
    for_each_link(
        [&](NodeId own, NodeId, EdgeOffset) { ends[size_t{own} + 1].fetch_add(1, std::memory_order_relaxed); });
    const uint64_t room = std::max<uint64_t>(graph_.streamed / sizeof(uint64_t), size_t{1} << 16);
    for (size_t begin = 0; begin < count_;) {
      uint64_t links = 0;
      size_t end = begin;
      // Whole blocks, so that each is made in one piece.
      while (end < count_ && (end % kContractedRows != 0 || end == begin || links < room)) {
        links += ends[end + 1].load(std::memory_order_relaxed);
        ++end;
      }
      add_up_stretch(begin, end, links, ends);
      begin = end;
    }
  }

  void add_up_stretch(size_t begin, size_t end, uint64_t links, std::span<std::atomic<uint64_t>> ends) {
    std::vector<uint64_t> starts(end - begin + 1, 0);
    for (size_t c = begin; c < end; ++c) {
      starts[c - begin + 1] = starts[c - begin] + ends[c + 1].load(std::memory_order_relaxed);
      ends[c + 1].store(starts[c - begin], std::memory_order_relaxed);  // the next free place
    }
    Buffer<uint64_t> placed(links);
    graph_.with_weights([&](auto weight_of) {
      for_each_link([&](NodeId own, NodeId other, EdgeOffset e) {
        if (own >= begin && own < end)
          placed[ends[size_t{own} + 1].fetch_add(1, std::memory_order_relaxed)] = pack(other, weight_of(e));
      });
    });
    parallel_blocks(end - begin, kContractedRows, [&](size_t first, size_t last) {
      std::vector<uint64_t> row;
      for (size_t i = first; i < last; ++i) {
        row.assign(placed.begin() + starts[i], placed.begin() + starts[i + 1]);
        offsets_[begin + i + 1] = blocks_[(begin + first) / kContractedRows].append(row);
      }
    });
  }

  void weigh(LevelGraph& coarse) const {
    coarse.num_constraints = graph_.num_constraints;
    for (size_t c = 0; c < graph_.num_constraints; ++c) {
      Buffer<uint32_t>& weights = coarse.node_weights[c];
      weights = Buffer<uint32_t>(count_, 0);
      for (size_t v = 0; v < cluster_of_.size(); ++v) {
        uint32_t& sum = weights[cluster_of_[v]];
        sum = static_cast<uint32_t>(
            std::min<uint64_t>(uint64_t{sum} + graph_.node_weight(static_cast<NodeId>(v), c), UINT32_MAX));
      }
    }
  }

  LevelGraph joined() {
    LevelGraph coarse;
    weigh(coarse);
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    Buffer<NodeId> targets(offsets_[count_]);
    Buffer<uint32_t> weights(offsets_[count_]);
    parallel_blocks(blocks_.size(), 1, [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        const EdgeOffset at = offsets_[b * kContractedRows];
        std::copy(blocks_[b].targets.begin(), blocks_[b].targets.end(), targets.begin() + at);
        std::copy(blocks_[b].weights.begin(), blocks_[b].weights.end(), weights.begin() + at);
        blocks_[b] = {};
      }
    });
    coarse.offsets = std::move(offsets_);
    coarse.targets = std::move(targets);
    coarse.edge_weights = std::move(weights);
    return coarse;
  }

  const LevelGraph& graph_;
  std::span<const NodeId> cluster_of_;
  const NodeId count_;
  Buffer<EdgeOffset> offsets_;
  std::vector<ContractedRows> blocks_;
};

}  // namespace

LevelGraph contract(const LevelGraph& graph, std::span<const NodeId> cluster_of, NodeId num_clusters) {
  return Contraction(graph, cluster_of, num_clusters).run();
}

}  // namespace cgcn
