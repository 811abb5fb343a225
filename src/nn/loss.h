// The batch's loss: plain mean of the cross-entropy over the labelled rows, softmax where a node has one class, sigmoid
// (mean over the classes too, as in the released code) where it has any number.
#pragma once

#include "common/buffer.h"
#include "graph/batch.h"
#include "graph/dataset.h"
#include "kernels/matrix.h"

namespace cgcn {

class Loss {
 public:
  void reserve(size_t rows) { block_sums_.reserve_discarding(rows / kBlockRows + 1); }
  // Replaces the logits by the gradient of the loss; rows without a label get zero. Returns the loss.
  double replace_by_gradient(const Batch& batch, const Labels& labels, kernels::Matrix logits);

 private:
  static constexpr size_t kBlockRows = 64;
  Buffer<double> block_sums_;
};

}  // namespace cgcn
