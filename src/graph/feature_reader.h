// Some rows of a feature matrix at a time, in the order asked for: read from the store's files, or copied from where
// they lie in memory.
#pragma once

#include <memory>

#include "common/input_file.h"
#include "common/placed_memory.h"
#include "graph/features.h"

namespace cgcn {

class FeatureReader {
 public:
  // Copies from the matrix.
  explicit FeatureReader(FeatureMatrix matrix) : matrix_(std::move(matrix)) {}
  // Reads the features of the store in this folder; of the matrix, which is mapped from there, only sparse offsets are
  // touched.
  FeatureReader(FeatureMatrix matrix, const fs::path& store);

  // Reused from one read to the next.
  class Rows {
   public:
    FeatureMatrix matrix;  // row i is that of ids[i]

   private:
    friend class FeatureReader;
    // So many rows of such a matrix, with so many entries if it is sparse.
    void place(const FeatureMatrix& like, uint64_t rows, uint64_t entries);
    void lay_out(const FeatureMatrix& like, uint64_t rows, uint64_t entries) {
      memory_.lay_out_again([&] { place(like, rows, entries); });
    }

    PlacedMemory memory_;
    char* dense_ = nullptr;
    EdgeOffset* offsets_ = nullptr;
    uint32_t* columns_ = nullptr;
    float* values_ = nullptr;
  };
  // Ids that follow one another are one read.
  void read(std::span<const NodeId> ids, Rows& rows) const;

  // What rows with so many entries take in Rows.
  static uint64_t buffer_bytes(const FeatureMatrix& matrix, uint64_t rows, uint64_t entries);

 private:
  void read_dense(std::span<const NodeId> ids, Rows& rows) const;
  void read_sparse(std::span<const NodeId> ids, Rows& rows) const;

  FeatureMatrix matrix_;
  std::shared_ptr<const InputFile> first_, second_;  // dense values; or columns and values
};

}  // namespace cgcn
