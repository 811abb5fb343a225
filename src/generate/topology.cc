// Every node u has a weight w_u from a truncated Pareto distribution. It sends out edges in proportion to it; each
// picks a level of community (mostly the smallest) and there a node v with probability w_v / Σw. An edge that is there
// already moves one level outward. Rounds follow until there are enough; the surplus of the last one is taken away at
// random.
#include "generate/topology.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "common/interrupt.h"
#include "common/progress.h"
#include "common/threads.h"
#include "generate/streams.h"

namespace cgcn {
namespace {

constexpr double kTailExponent = 1.5;  // P(degree > x) ~ x^-1.5
constexpr double kHubDegree = 12;      // the largest expected degree, in √n …
constexpr double kHubShare = 0.2;      // … but no more than this share of a small graph's nodes
constexpr double kOutward = 0.3;       // of a level's edges, how many go further out
constexpr size_t kNodeBlock = 4096, kBlocksAtOnce = 64;
constexpr uint32_t kRounds = 12;

// cumulative[p] = Σ of the weights of the places before p.
std::vector<double> draw_weights(const Shape& shape, const Communities& communities, uint64_t seed) {
  std::vector<double> cumulative(size_t{shape.nodes} + 1);
  const double mean_degree = std::max(1.0, 2.0 * static_cast<double>(shape.edges) / shape.nodes);
  for (const Community& graph : communities.levels()[0]) {
    const double n = graph.end - graph.begin, hub = std::min(kHubDegree * std::sqrt(n), kHubShare * n);
    const double least_degree = mean_degree * (kTailExponent - 1) / kTailExponent;
    const double largest = std::max(4.0, hub / least_degree);
    parallel_blocks(graph.end - graph.begin, kNodeBlock, [&](size_t begin, size_t end) {
      for (size_t p = graph.begin + begin; p < graph.begin + end; ++p) {
        const double u = 1 - stream(seed, Stream::kDegrees, static_cast<uint32_t>(p)).uniform_double();
        cumulative[p + 1] = std::min(largest, std::pow(u, -1 / kTailExponent));
      }
    });
  }
  std::partial_sum(cumulative.begin(), cumulative.end(), cumulative.begin());
  return cumulative;
}

class LinkDrawer {
 public:
  LinkDrawer(const Communities& communities, std::span<const double> cumulative, uint64_t seed)
      : communities_(communities), cumulative_(cumulative), seed_(seed) {}

  // Adds about `wanted` edges, duplicates among them possible across nodes but not within one. Nodes are taken a
  // stretch at a time.
  void draw(double wanted, uint32_t round, double new_share, EdgeKeys& edges, Progress& progress) const {
    const NodeId n = communities_.num_nodes();
    const double rate = wanted / cumulative_[n];
    std::vector<std::vector<EdgeKey>> blocks(kBlocksAtOnce);
    for (size_t first = 0; first < n; first += kBlocksAtOnce * kNodeBlock) {
      throw_if_interrupted();
      const size_t count = std::min<size_t>(n - first, kBlocksAtOnce * kNodeBlock);
      parallel_blocks(count, kNodeBlock, [&](size_t begin, size_t end) {
        std::vector<EdgeKey>& keys = blocks[begin / kNodeBlock];
        keys.clear();
        for (size_t p = first + begin; p < first + end; ++p) {
          // Differences of the rounded running sum: every block draws its share, and all together the total.
          const auto links =
              static_cast<uint64_t>(std::floor(rate * cumulative_[p + 1]) - std::floor(rate * cumulative_[p]));
          draw_from(static_cast<NodeId>(p), links, round, keys);
        }
        progress.advance(static_cast<uint64_t>(new_share * static_cast<double>(keys.size())));
      });
      for (size_t b = 0; b < (count + kNodeBlock - 1) / kNodeBlock; ++b) edges.add(blocks[b]);
    }
  }

 private:
  void draw_from(NodeId place, uint64_t links, uint32_t round, std::vector<EdgeKey>& keys) const {
    Random random = stream(seed_, Stream::kEdges, place, round);
    std::array<Community, 32> around;  // the communities that hold this place, smallest first
    size_t depth = 0;
    for (uint32_t i = communities_.leaf_of(place); depth < communities_.num_levels(); ++depth) {
      around[depth] = communities_.levels()[communities_.num_levels() - 1 - depth][i];
      i = around[depth].parent;
    }
    const size_t first = keys.size();
    for (uint64_t k = 0; k < links; ++k) {
      size_t level = 0;
      while (level + 1 < depth && random.uniform() < kOutward) ++level;
      for (; level < depth; ++level) {
        const NodeId other = pick(around[level], random);
        const EdgeKey key = key_of(communities_.node_at(place), communities_.node_at(other));
        if (other == place ||
            std::find(keys.begin() + static_cast<std::ptrdiff_t>(first), keys.end(), key) != keys.end())
          continue;
        keys.push_back(key);
        break;
      }
    }
  }

  NodeId pick(const Community& community, Random& random) const {
    const double low = cumulative_[community.begin], high = cumulative_[community.end];
    const double at = low + (high - low) * random.uniform_double();
    const auto begin = cumulative_.begin() + community.begin + 1, end = cumulative_.begin() + community.end;
    return static_cast<NodeId>(std::upper_bound(begin, end, at) - cumulative_.begin() - 1);
  }

  const Communities& communities_;
  std::span<const double> cumulative_;
  uint64_t seed_;
};

// The last few of a nearly complete graph: drawn from the pairs that are not linked.
void fill_from_complement(std::vector<EdgeKey>& keys, const Shape& shape, uint64_t seed) {
  std::vector<EdgeKey> absent;
  NodeId begin = 0;
  for (const NodeId size : shape.graph_sizes) {
    for (NodeId a = begin; a < begin + size; ++a) {
      throw_if_interrupted();
      auto linked = std::lower_bound(keys.begin(), keys.end(), key_of(a, a));
      for (NodeId b = a + 1; b < begin + size; ++b) {
        if (linked != keys.end() && *linked == key_of(a, b))
          ++linked;
        else
          absent.push_back(key_of(a, b));
      }
    }
    begin += size;
  }
  const size_t missing = shape.edges - keys.size();
  CGCN_CHECK(missing <= absent.size());
  Random random = stream(seed, Stream::kSurplus, 1);
  for (size_t i = 0; i < missing; ++i) {
    const size_t left = absent.size() - i;
    std::swap(absent[i], absent[i + static_cast<size_t>(random.uniform_double() * static_cast<double>(left))]);
  }
  keys.insert(keys.end(), absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(missing));
  std::sort(keys.begin(), keys.end());
}

void drop_surplus(EdgeKeys& edges, uint64_t wanted, uint64_t seed) {
  Random random = stream(seed, Stream::kSurplus);
  const uint64_t found = edges.size();
  std::vector<bool> dropped(found);
  for (uint64_t surplus = found - wanted; surplus > 0;) {
    const auto i = static_cast<size_t>(random.uniform_double() * static_cast<double>(found));
    if (dropped[i]) continue;
    dropped[i] = true;
    --surplus;
  }
  edges.filter([&](uint64_t index) { return !dropped[index]; });
}

}  // namespace

EdgeKeys generate_links(const Shape& shape, const Communities& communities, uint64_t seed, const EdgeRoom& room) {
  const std::vector<double> cumulative = draw_weights(shape, communities, seed);
  const LinkDrawer drawer(communities, cumulative, seed);
  Progress progress("Drawing edges", shape.edges, "edges");
  EdgeKeys edges(shape.nodes, shape.edges, room);
  uint64_t found = 0;
  double new_share = 1;  // of the edges drawn in the last round, how many were not there yet
  for (uint32_t round = 0; round < kRounds && found < shape.edges; ++round) {
    const uint64_t before = found;
    const double wanted = (1.02 * static_cast<double>(shape.edges - before) + 16) / new_share;
    drawer.draw(wanted, round, new_share, edges, progress);
    edges.settle();
    found = edges.size();
    progress.set(std::min(found, shape.edges));
    new_share = std::max(0.05, static_cast<double>(found - before) / wanted);
  }
  if (found < shape.edges) {
    std::vector<EdgeKey> keys = edges.take_all();
    fill_from_complement(keys, shape, seed);
    edges.add(keys);
    edges.settle();
  }
  if (found > shape.edges) drop_surplus(edges, shape.edges, seed);
  return edges;
}

}  // namespace cgcn
