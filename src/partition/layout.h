// The store's arrays again, in cluster order.
#pragma once

#include <span>

#include "partition/assignment.h"

namespace cgcn {

// Streams the chosen nodes' part of the store into the writer, cluster after cluster, ids rising within a cluster.
// Memory: 12 bytes per node and buffers of memory / 8; mapped pages are given back if they are more than memory / 2,
// which is looked at before another quarter can have been touched.
void write_layout(const Store& store, std::span<const NodeId> nodes, const Assignment& assignment, uint64_t memory,
                  StoreWriter& writer);

// The layout that was written there, of a graph of so many nodes.
ClusterLayout open_layout(std::shared_ptr<const Store> partition, NodeId graph_nodes);

}  // namespace cgcn
