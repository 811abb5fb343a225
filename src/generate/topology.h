// Edges: degrees with a heavy tail, most edges inside small communities, fewer at each level outward.
#pragma once

#include "generate/communities.h"
#include "generate/edge_keys.h"

namespace cgcn {

// Exactly shape.edges undirected edges, none twice, no loops, none between separate graphs.
EdgeKeys generate_links(const Shape& shape, const Communities& communities, uint64_t seed, const EdgeRoom& room);

}  // namespace cgcn
