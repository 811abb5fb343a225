#include "generate/node_features.h"

#include "common/threads.h"
#include "generate/streams.h"

namespace cgcn {

NodeFeatures::NodeFeatures(const Shape& shape, const Communities& communities, uint32_t columns,
                           std::span<const int32_t> classes, uint64_t seed)
    : communities_(communities), classes_(classes), columns_(columns), seed_(seed) {
  // A community's mean is its parent's and a deviation of its own.
  std::vector<float> above;
  for (uint32_t level = 0; level < communities.num_levels(); ++level) {
    const auto& blocks = communities.levels()[level];
    leaf_means_.assign(blocks.size() * columns, 0);
    parallel_blocks(blocks.size(), 64, [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        Random random = stream(seed, Stream::kPrototypes, static_cast<uint32_t>(b), level);
        for (uint32_t f = 0; f < columns; ++f)
          leaf_means_[b * columns + f] = (level == 0 ? 0 : above[size_t{blocks[b].parent} * columns + f]) +
                                         shape.signal.community_strength * random.normal();
      }
    });
    above = leaf_means_;
  }
  if (classes.empty()) return;
  class_means_.resize(size_t{shape.classes} * columns);
  for (uint32_t c = 0; c < shape.classes; ++c) {
    Random random = stream(seed, Stream::kClassPrototypes, c);
    for (uint32_t f = 0; f < columns; ++f)
      class_means_[size_t{c} * columns + f] = shape.signal.class_strength * random.normal();
  }
}

void NodeFeatures::row(NodeId node, std::span<float> out) const {
  const float* leaf = &leaf_means_[size_t{communities_.leaf_of(communities_.place_of(node))} * columns_];
  const float* of_class = classes_.empty() ? nullptr : &class_means_[static_cast<size_t>(classes_[node]) * columns_];
  Random random = stream(seed_, Stream::kFeatures, node);
  for (uint32_t f = 0; f < columns_; ++f) out[f] = random.normal() + leaf[f] + (of_class == nullptr ? 0 : of_class[f]);
}

}  // namespace cgcn
