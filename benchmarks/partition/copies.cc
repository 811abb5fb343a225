// A graph too large to be drawn quickly: K copies of a store's undirected graph, with one edge in a hundred leading
// from a copy to another one (a covering graph). Every node has the degree of its original; there are no features and
// labels.
//
//   bench_copies STORE K TARGET
#include <fmt/format.h>

#include <string>

#include "common/threads.h"
#include "graph/store.h"

using namespace cgcn;

// How many copies further the edge from v to u > v leads.
static uint32_t shift_of(NodeId v, NodeId u, uint32_t copies) {
  uint64_t x = (uint64_t{v} << 32 | u) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return (x >> 40) % 100 == 0 ? static_cast<uint32_t>((x >> 8) % copies) : 0;
}

int main(int count, char** arguments) {
  if (count < 4) return 1;
  const Store source(arguments[1], Verify::kShapesOnly);
  const Dataset data = source.dataset();
  const CsrGraph& graph = data.graph;
  const auto copies = static_cast<uint32_t>(std::stoul(arguments[2]));
  const uint64_t nodes = uint64_t{graph.num_nodes()} * copies;
  if (copies < 1 || nodes >= kNoNode || graph.directed() || graph.weighted()) return 1;
  StoreWriter writer(arguments[3], StagedDirectory::Existing::kRefuse);
  ArrayWriter targets = writer.begin_array<NodeId>("adjacency_targets");
  Buffer<EdgeOffset> offsets(nodes + 1);
  offsets[0] = 0;
  std::vector<NodeId> row;
  for (NodeId v = 0; v < graph.num_nodes(); ++v)
    for (uint32_t copy = 0; copy < copies; ++copy) {  // node v of this copy is number v · copies + copy
      row.clear();
      for (const NodeId u : graph.neighbours(v)) {
        const uint32_t shift = v < u ? shift_of(v, u, copies) : copies - shift_of(u, v, copies);
        row.push_back(u * copies + (copy + shift) % copies);
      }
      targets.append(std::span<const NodeId>(row));
      const uint64_t at = uint64_t{v} * copies + copy;
      offsets[at + 1] = offsets[at] + row.size();
    }
  writer.end_array("adjacency_targets", targets);
  writer.write_array("adjacency_offsets", std::span<const EdgeOffset>(offsets));
  writer.declare_graph(static_cast<NodeId>(nodes), offsets[nodes], offsets[nodes] / 2, false, false);
  writer.declare_features(FeatureMatrix::Kind::kIdentity, static_cast<uint32_t>(nodes));
  writer.finish(data.name);
  fmt::print("{} nodes, {} adjacency entries\n", nodes, offsets[nodes]);
}
