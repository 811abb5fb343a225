#include "generate/node_features.h"

#include <cmath>

#include "generate/streams.h"

namespace cgcn {
namespace {

// Random directions of the given length, one row each.
std::vector<float> draw_directions(uint32_t rows, uint32_t columns, float length, uint32_t which, uint64_t seed) {
  std::vector<float> directions(size_t{rows} * columns);
  for (uint32_t r = 0; r < rows; ++r) {
    Random random = stream(seed, Stream::kDirections, r, which);
    double squares = 0;
    for (uint32_t f = 0; f < columns; ++f) {
      const float value = directions[size_t{r} * columns + f] = random.normal();
      squares += double{value} * value;
    }
    const auto scale = static_cast<float>(length / std::sqrt(squares));
    for (uint32_t f = 0; f < columns; ++f) directions[size_t{r} * columns + f] *= scale;
  }
  return directions;
}

HiddenRow draw_hidden(uint64_t seed, uint32_t index, uint32_t level) {
  Random random = stream(seed, Stream::kHidden, index, level);
  HiddenRow row;
  for (float& value : row) value = random.normal();
  return row;
}

}  // namespace

NodeFeatures::NodeFeatures(const Shape& shape, const Communities& communities, uint32_t columns,
                           std::span<const int32_t> classes, uint64_t seed)
    : communities_(communities),
      classes_(classes),
      columns_(columns),
      own_(shape.signal.own),
      seed_(seed),
      leaf_hidden_(communities.leaves().size()),
      directions_(draw_directions(kHidden, columns, 1, 0, seed)) {
  for (uint32_t leaf = 0; leaf < leaf_hidden_.size(); ++leaf) {
    const HiddenRow small = draw_hidden(seed, leaf, 1), above = draw_hidden(seed, communities.leaves()[leaf].parent, 2);
    for (uint32_t j = 0; j < kHidden; ++j)
      leaf_hidden_[leaf][j] = shape.signal.community * small[j] + shape.signal.above * above[j];
  }
  if (!classes.empty()) class_directions_ = draw_directions(shape.classes, columns, shape.signal.classes, 1, seed);
}

void NodeFeatures::row(NodeId node, std::span<float> out) const {
  const HiddenRow& shared = leaf_hidden_[communities_.leaf_of(communities_.place_of(node))];
  Random random = stream(seed_, Stream::kFeatures, node);
  for (float& value : out) value = random.normal();
  for (uint32_t j = 0; j < kHidden; ++j) {
    const float hidden = shared[j] + own_ * random.normal();
    for (uint32_t f = 0; f < columns_; ++f) out[f] += hidden * directions_[size_t{j} * columns_ + f];
  }
  if (classes_.empty()) return;
  const float* towards = &class_directions_[static_cast<size_t>(classes_[node]) * columns_];
  for (uint32_t f = 0; f < columns_; ++f) out[f] += towards[f];
}

HiddenRow NodeFeatures::read_hidden(std::span<const float> row) const {
  HiddenRow hidden{};
  for (uint32_t j = 0; j < kHidden; ++j)
    for (uint32_t f = 0; f < columns_; ++f) hidden[j] += row[f] * directions_[size_t{j} * columns_ + f];
  return hidden;
}

}  // namespace cgcn
