// From edges in any order, with duplicates, loops and one-directional entries, to a CsrGraph, counting what was fixed.
//
// Sources are replayed: once to count, then once for each range of rows that is placed and sorted at a time. So edges
// which are already in a mapped file are never copied (an EdgeList holds those that had to be parsed), and rows pass on
// to a file without ever being in memory together. Peak memory: the source, 12 bytes per node, and the rows of one
// range: a sixth of all, or 32 MiB.
#pragma once

#include <functional>
#include <span>

#include "graph/edge_list.h"

namespace cgcn {

struct BuildOptions {
  bool directed = false;         // keep direction; otherwise every edge gets its reverse
  bool keep_self_loops = false;  // dropped by default: the normalisations add their own
  uint64_t memory = UINT64_MAX;  // for the whole process; Error with the least that works if it needs more
  uint64_t entries_at_once = 0;  // in one range of rows, both directions counted; 0: as said above
};

// What was found and done, to be told to the user.
struct BuildCounts {
  uint64_t entries = 0;          // as the source listed them
  uint64_t duplicates = 0;       // the same ordered pair again: merged (weights added)
  uint64_t self_loops = 0;       // dropped: as many as were listed, and none of them a duplicate; kept: distinct ones
  uint64_t one_directional = 0;  // without their reverse, which was added; only if undirected
};

struct BuiltRows {
  Buffer<uint32_t> degrees;
  uint64_t entries = 0, loops = 0;
  bool weighted = false;
  uint64_t num_edges(bool directed) const { return directed ? entries : (entries - loops) / 2 + loops; }
};
// Takes the targets (and weights, if there are such) of consecutive rows, each sorted, the first rows first.
using RowSink = std::function<void(std::span<const NodeId> targets, std::span<const float> weights)>;
BuiltRows build_rows(NodeId num_nodes, EdgeSource& edges, const BuildOptions& options, BuildCounts* counts,
                     const RowSink& sink);

CsrGraph build_graph(NodeId num_nodes, EdgeSource& edges, const BuildOptions& options, BuildCounts* counts);

}  // namespace cgcn
