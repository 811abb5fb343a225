// From edges in any order, with duplicates, loops and one-directional entries, to a CsrGraph, counting what was mended.
//
// Sources are replayed (counted, then placed), so that edges which are already in a mapped file are never copied; an
// EdgeList holds those that had to be parsed. Peak memory: the source, plus 12 bytes per undirected edge listed once.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "graph/csr_graph.h"

namespace cgcn {

// A run of edges: from[i] → to[i], with weights[i] where weights is not null.
struct EdgeRun {
  const NodeId* from;
  const NodeId* to;
  const float* weights;
  size_t size;
};

class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  virtual bool weighted() const = 0;
  // Calls with every edge once, in the same order each time. Ids are below the number of nodes given to build_graph.
  virtual void visit(const std::function<void(const EdgeRun&)>& use) const = 0;
  virtual void release() {}  // the last visit is over: memory may be given back
};

class EdgeList final : public EdgeSource {
 public:
  explicit EdgeList(bool weighted = false) : weighted_(weighted) {}
  void add(NodeId from, NodeId to, float weight = 1);
  uint64_t size() const { return size_; }

  bool weighted() const override { return weighted_; }
  void visit(const std::function<void(const EdgeRun&)>& use) const override;
  void release() override;

 private:
  struct Chunk;  // fixed size, so that growing never copies
  std::vector<std::shared_ptr<Chunk>> chunks_;
  uint64_t size_ = 0;
  bool weighted_;
};

struct BuildOptions {
  bool directed = false;         // keep direction; otherwise every edge gets its reverse
  bool keep_self_loops = false;  // dropped by default: the normalisations add their own
};

// What was found and done, to be told to the user.
struct BuildCounts {
  uint64_t entries = 0;          // as the source listed them
  uint64_t duplicates = 0;       // the same ordered pair again: merged (weights added)
  uint64_t self_loops = 0;       // dropped: as many as were listed, and none of them a duplicate; kept: distinct ones
  uint64_t one_directional = 0;  // without their reverse, which was added; only where undirected
};

CsrGraph build_graph(NodeId num_nodes, EdgeSource& edges, const BuildOptions& options, BuildCounts* counts);

}  // namespace cgcn
