// Features in a file of arrays: dense (.npy, or .npz with one member), or sparse as SciPy saves them.
#pragma once

#include <optional>

#include "io/formats/import_steps.h"
#include "io/numpy/sparse_matrix.h"

namespace cgcn {

class ArrayFeatures {
 public:
  ArrayFeatures(const fs::path& path, const fs::path& scratch) {
    if (is_npz(path))
      if (const NpzFile file(path, scratch); SparseMatrix::is_in(file)) {
        sparse_ = SparseMatrix::read(file);
        return;
      }
    dense_ = open_array(path, scratch);
  }
  NodeId rows() const {
    return dense_ ? check_node_count(dense_->rows(), dense_->where())
                  : check_node_count(sparse_->rows, sparse_->where());
  }
  void import_into(StoreWriter& store, NodeId num_nodes) const {
    dense_ ? import_features(*dense_, num_nodes, store) : import_sparse_features(*sparse_, num_nodes, store);
  }

 private:
  std::optional<Array> dense_;
  std::optional<SparseMatrix> sparse_;
};

}  // namespace cgcn
