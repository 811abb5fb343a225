#include "generate/node_classes.h"

#include <algorithm>
#include <numeric>

#include "generate/streams.h"

namespace cgcn {

std::vector<int32_t> assign_classes(const Shape& shape, const Communities& communities, uint64_t seed) {
  std::vector<uint32_t> order(shape.classes);  // classes along the places
  std::iota(order.begin(), order.end(), 0u);
  stream(seed, Stream::kClassOrder).shuffle(std::span(order));
  std::vector<int32_t> classes(shape.nodes);
  // Graph after graph takes its share of every class: the running count, rounded, so that the totals come out exact.
  std::vector<uint64_t> given(shape.classes);
  NodeId place = 0;
  for (const Community& graph : communities.levels()[0]) {
    std::vector<uint64_t> upto(shape.classes);
    std::vector<double> left(shape.classes);
    for (uint32_t c = 0; c < shape.classes; ++c) left[c] = static_cast<double>(shape.class_sizes[c] - given[c]);
    const std::vector<uint64_t> here = apportion(graph.end - graph.begin, left);
    for (const uint32_t c : order) {
      for (uint64_t i = 0; i < here[c]; ++i) classes[communities.node_at(place++)] = static_cast<int32_t>(c);
      given[c] += here[c];
    }
  }
  return classes;
}

void add_label_noise(std::vector<int32_t>& classes, const Shape& shape, uint64_t seed) {
  Random random = stream(seed, Stream::kLabelNoise);
  std::vector<NodeId> moved;
  for (NodeId v = 0; v < shape.nodes; ++v)
    if (random.uniform() < shape.signal.label_noise) moved.push_back(v);
  random.shuffle(std::span(moved));
  for (size_t i = 1; i < moved.size(); ++i) std::swap(classes[moved[i - 1]], classes[moved[i]]);
}

}  // namespace cgcn
