// The store's arrays again, in cluster order.
#pragma once

#include <span>

#include "partition/assignment.h"

namespace cgcn {

// Streams the chosen nodes' part of the store into the writer, cluster after cluster, ids rising within a cluster.
// Memory: 12 bytes a node and one chunk of rows; what it reads is mapped and given back as it goes.
void write_layout(const Store& store, std::span<const NodeId> nodes, const Assignment& assignment, StoreWriter& writer);

// The layout that was written there.
ClusterLayout open_layout(const Store& partition);

}  // namespace cgcn
