// Links: degrees with a heavy tail, most links inside small communities, fewer at each level outward.
#pragma once

#include "generate/communities.h"
#include "graph/csr_graph.h"

namespace cgcn {

// Exactly shape.edges undirected edges, none twice, no loops, none between separate graphs.
CsrGraph generate_links(const Shape& shape, const Communities& communities, uint64_t seed);

}  // namespace cgcn
