#include "generate/communities.h"

#include <algorithm>
#include <numeric>

#include "generate/streams.h"

namespace cgcn {
namespace {

constexpr uint32_t kBranching = 4;  // a community is cut into this many smaller ones

// A smallest community holds a few times a node's neighbours, so that most edges can stay inside without being all
// alike.
NodeId leaf_size(const Shape& shape) {
  const double degree = 2.0 * static_cast<double>(shape.edges) / shape.nodes;
  return static_cast<NodeId>(std::clamp(2.0 * degree, 24.0, 200.0));
}

std::vector<Community> cut(const std::vector<Community>& level, size_t depth, NodeId smallest, uint64_t seed) {
  std::vector<Community> next;
  for (uint32_t i = 0; i < level.size(); ++i) {
    const Community& whole = level[i];
    const NodeId size = whole.end - whole.begin;
    const auto pieces = std::clamp<uint32_t>((size + smallest / 2) / smallest, 1, kBranching);
    Random random = stream(seed, Stream::kCommunitySizes, i, static_cast<uint32_t>(depth));
    std::vector<double> weights(pieces);
    for (double& weight : weights) weight = 0.6 + 0.8 * random.uniform_double();
    NodeId begin = whole.begin;
    for (const uint64_t piece : apportion(size, weights)) {
      next.push_back({begin, static_cast<NodeId>(begin + piece), i});
      begin += static_cast<NodeId>(piece);
    }
  }
  return next;
}

}  // namespace

Communities::Communities(const Shape& shape, uint64_t seed)
    : leaf_of_(shape.nodes), order_(shape.nodes), place_(shape.nodes) {
  NodeId begin = 0;
  std::vector<Community> level;
  for (uint32_t g = 0; g < shape.graph_sizes.size(); ++g) {
    level.push_back({begin, begin + shape.graph_sizes[g], g});
    begin += shape.graph_sizes[g];
  }
  levels_.push_back(level);
  const NodeId smallest = leaf_size(shape);
  for (std::vector<Community> next; (next = cut(level, levels_.size(), smallest, seed)).size() > level.size();
       level = std::move(next))
    levels_.push_back(next);
  for (uint32_t i = 0; i < leaves().size(); ++i)
    std::fill(leaf_of_.begin() + leaves()[i].begin, leaf_of_.begin() + leaves()[i].end, i);

  std::iota(order_.begin(), order_.end(), NodeId{0});
  for (uint32_t g = 0; g < levels_[0].size(); ++g) {
    const Community& graph = levels_[0][g];
    stream(seed, Stream::kOrder, g).shuffle(std::span(order_.begin() + graph.begin, graph.end - graph.begin));
  }
  for (NodeId place = 0; place < shape.nodes; ++place) place_[order_[place]] = place;
}

}  // namespace cgcn
