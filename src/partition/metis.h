// METIS, kept at arm's length.
//
// It runs in a process of its own, clustergcn-metis: an interrupt can end it at any moment (the library has no way to),
// a crash or its own printing never reaches the user, the signal handlers that it installs stay away from ours, and its
// memory, several times the graph's, is given back whole. The process is started, not forked, so that this works from a
// program with many threads. Graph and result pass through a file in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/buffer.h"
#include "graph/csr_graph.h"
#include "partition/partition.h"

namespace cgcn {

// What METIS is given: symmetric, without loops, 32-bit indices.
struct MetisGraph {
  Buffer<int32_t> offsets;  // n + 1
  Buffer<int32_t> targets;
  Buffer<int32_t> edge_weights;  // empty, or one per target: all ≥ 1, their sum below 2³¹
  Buffer<int32_t> node_weights;  // empty, or num_constraints per node
  int32_t num_constraints = 1;

  int32_t num_nodes() const { return static_cast<int32_t>(offsets.size()) - 1; }
};

// Throws Error if nodes or adjacency entries are more than METIS can count.
void check_metis_size(uint64_t nodes, uint64_t entries);

// The graph among `nodes` (rising ids), symmetrised if directed, loops dropped, weights scaled to whole numbers.
MetisGraph make_metis_graph(const Dataset& data, std::span<const NodeId> nodes, NodeWeights node_weights);

// About what METIS takes for a graph of this size, which it copies as it coarsens it, and the graph itself.
uint64_t estimate_metis_memory(uint64_t nodes, uint64_t entries);

struct MetisRun {
  Buffer<uint32_t> clusters;  // per node of the METIS graph, below parts
  uint64_t peak_rss = 0;      // of the child
  double seconds = 0;         // METIS's own
  double beside_seconds = 0;  // of the work done in the meantime
};

// parts is from 2 to the number of nodes. METIS has one thread: if there are more, they do what `beside` says in the
// meantime, within what METIS leaves of options.metis_memory. Throws Error with METIS's reason, or Interrupted.
MetisRun run_metis(MetisGraph graph, uint32_t parts, const PartitionOptions& options,
                   const WorkBesideMetis& beside = {});

// Several graphs, each for itself, on as many processes as there are threads. Which process takes which does not change
// the result.
struct MetisPiece {
  MetisGraph graph;
  uint32_t parts = 0;  // from 1; as many as nodes or more: each node is a cluster of its own
  PartitionOptions options;
};
using MakeMetisPiece = std::function<MetisPiece(size_t piece)>;  // called in the order of the pieces

// Piece i has the nodes starts[i] … starts[i + 1) of the result, and parts[i] clusters.
MetisRun run_metis_pieces(std::span<const size_t> starts, std::span<const uint32_t> parts, const MakeMetisPiece& make);

}  // namespace cgcn
