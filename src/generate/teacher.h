// Any number of labels per node: a hidden teacher network looks at several hops of neighbours.
#pragma once

#include "generate/node_features.h"
#include "graph/csr_graph.h"

namespace cgcn {

// Packed bits as in Labels: n rows of Labels::row_bytes(shape.classes).
std::vector<uint8_t> teach_labels(const Shape& shape, const CsrGraph& graph, const NodeFeatures& features,
                                  uint64_t seed);

}  // namespace cgcn
