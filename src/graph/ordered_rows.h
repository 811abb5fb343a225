// N(A) with its rows and columns in another order, made from a copy of the edges in that order: rows that follow each
// other are read from memory one after another. The entries of a row stay in the order of their nodes, so that a sum
// over them has the same bits.
#pragma once

#include <span>
#include <vector>

#include "graph/normalised_rows.h"

namespace cgcn {

class OrderedRows {
 public:
  // place: of each node, the row and column that it has here.
  OrderedRows(const NormalisedRows& rows, std::span<const NodeId> place);
  static uint64_t bytes(const CsrGraph& graph, const Normalisation& normalisation);

  // Rows begin … end into rows.view, which holds as long as both do.
  void fill(size_t begin, size_t end, NormalisedRows::SparseRows& rows) const;

 private:
  float value(size_t row, uint32_t column) const {
    return column == row ? diagonal_[row] : normalisation_.link(scales_[row], scales_[column], 1);
  }

  Normalisation normalisation_;
  Buffer<uint64_t> offsets_;
  Buffer<uint32_t> columns_;
  Buffer<float> values_;             // of a weighted graph; those of others are made of
  Buffer<float> scales_, diagonal_;  // these
};

}  // namespace cgcn
