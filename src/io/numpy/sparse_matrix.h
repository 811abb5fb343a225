// A SciPy sparse matrix in arrays of any integer and float type: CSR, CSC or COO, from an .npz or a pickle.
#pragma once

#include "io/formats/import_steps.h"
#include "io/numpy/array.h"
#include "io/numpy/npz.h"

namespace cgcn {

struct SparseMatrix {
  enum class Format { kCsr, kCsc, kCoo };
  Format format = Format::kCsr;
  uint64_t rows = 0, columns = 0;
  // CSR: starts has a place for every row and one more, indices are columns. CSC: the two changed about. COO: starts
  // are the rows, one for each value.
  Array starts, indices, values;

  // What scipy.sparse.save_npz writes.
  static bool is_in(const NpzFile& file) { return file.has("shape") && file.has("data"); }
  static SparseMatrix read(const NpzFile& file);
  // CSR under names with a prefix: "adj_" for adj_data, adj_indices, adj_indptr, adj_shape.
  static SparseMatrix read_csr(const NpzFile& file, const std::string& prefix);

  // Throws Error unless lengths and types fit each other.
  void check() const;
  const std::string& where() const { return values.where(); }
};

// The entries (row, column, value) of a square matrix as edges row → column. Weights that are all 1 are left out.
std::unique_ptr<EdgeSource> make_edges(const SparseMatrix& matrix, NodeId num_nodes);

// Streams sparse features into the store row by row: columns sorted, repeated ones added up, zeros left out.
class SparseFeatureRows {
 public:
  SparseFeatureRows(StoreWriter& store, NodeId num_nodes, uint64_t columns, std::string where);
  void append(std::span<const int64_t> columns, std::span<const float> values);
  void append_empty();
  void finish();

 private:
  void flush();

  StoreWriter& store_;
  ArrayWriter offsets_, columns_, values_;
  std::vector<std::pair<uint32_t, float>> row_;
  // What is written next, many rows at a time.
  std::vector<EdgeOffset> pending_offsets_{0};
  std::vector<uint32_t> pending_columns_;
  std::vector<float> pending_values_;
  NodeId num_nodes_;
  uint32_t num_columns_;
  uint64_t rows_ = 0, entries_ = 0;
  std::string where_;
};

// Calls use(row, columns, values) for every row in turn; CSC and COO are brought into rows in memory first.
void for_each_row(const SparseMatrix& matrix,
                  const std::function<void(uint64_t, std::span<const int64_t>, std::span<const float>)>& use);

void import_sparse_features(const SparseMatrix& features, NodeId num_nodes, StoreWriter& store);

}  // namespace cgcn
