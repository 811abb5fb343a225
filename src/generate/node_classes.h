// One class per node: communities of one class lie together, so that edges mostly join nodes of a class.
#pragma once

#include "generate/communities.h"

namespace cgcn {

// The class by which a node's features are drawn. Class sizes are exactly shape.class_sizes.
std::vector<int32_t> assign_classes(const Shape& shape, const Communities& communities, uint64_t seed);
// Labels that differ from those classes for shape.signal.label_noise of the nodes, which trade theirs in a ring: sizes
// stay.
void add_label_noise(std::vector<int32_t>& classes, const Shape& shape, uint64_t seed);

}  // namespace cgcn
