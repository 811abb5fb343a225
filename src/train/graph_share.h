// Exact inference on the ranks of a group: which rows of the graph a rank computes, and the rows of others that their
// edges lead to.
//
// A rank has a contiguous range of nodes, in whole blocks of kInferenceBlock rows, with about as many edges as the
// others: rows are computed in the same blocks as by one process, so that no bit differs. Matrices have the rank's own
// rows first, and behind them those of other ranks that it needs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/buffer.h"
#include "dist/group.h"
#include "graph/csr_graph.h"
#include "kernels/matrix.h"
#include "train/slab_matrix.h"

namespace cgcn {

inline constexpr size_t kInferenceBlock = 512;  // rows that are multiplied together

class GraphShare {
 public:
  // Of one process: all rows.
  explicit GraphShare(const CsrGraph& graph) : ranges_{{0, graph.num_nodes()}} {}
  // All ranks call it together. The group outlives it.
  GraphShare(dist::Group& group, const CsrGraph& graph);

  bool is_alone() const { return ranges_.size() == 1; }
  kernels::RowRange own() const { return ranges_[is_alone() ? 0 : group_->rank()]; }
  kernels::RowRange of(uint32_t rank) const { return ranges_[rank]; }
  size_t rows() const { return own().size() + fetched_.size(); }  // of a matrix
  dist::Group& group() const { return *group_; }

  // Nodes become the rows that they have in a matrix.
  void to_rows(std::span<uint32_t> nodes) const;
  // The rows of other ranks, from theirs. Own rows are there.
  void fetch(SlabRows& matrix) const;
  // On rank 0: use(rows, first node) for the rows of all nodes, rising, so many at a time. The other ranks send theirs.
  void collect(const SlabMatrix& matrix, size_t rows_at_once,
               const std::function<void(kernels::ConstMatrix rows, NodeId first)>& use) const;
  // The same as one matrix, in a file if it takes more than `memory`; of no rows on the other ranks.
  SlabMatrix collect_all(const SlabMatrix& matrix, uint64_t memory) const;
  // Runs work() on the first rank alone. If it fails, all throw.
  template <class Work>
  void on_first(Work&& work) const {
    if (is_alone())
      work();
    else
      group_->on_first(work);
  }
  // Runs work() on all ranks. If it fails on one, all throw.
  template <class Work>
  void together(Work&& work) const {
    if (is_alone())
      work();
    else
      group_->together(work);
  }
  uint64_t bytes() const;

 private:
  void find_fetched(const CsrGraph& graph);

  dist::Group* group_ = nullptr;
  std::vector<kernels::RowRange> ranges_;      // by rank
  std::vector<NodeId> fetched_;                // nodes of other ranks, rising
  std::vector<size_t> fetched_from_;           // rank → the first of them that is its own; one more at the end
  std::vector<std::vector<uint32_t>> wanted_;  // rank → the own rows that it fetches
  Buffer<uint32_t> places_;                    // node → row of a matrix, for those that are fetched
};

}  // namespace cgcn
