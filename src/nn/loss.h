// The batch's loss, weighted by class if there are weights: plain mean of the cross-entropy over the labelled rows,
// softmax if a node has one class, sigmoid (mean over the classes too, as in the released code) if it has any number;
// or of the squared or absolute error of a number.
#pragma once

#include <utility>
#include <vector>

#include "common/buffer.h"
#include "graph/batch.h"
#include "graph/dataset.h"
#include "kernels/matrix.h"

namespace cgcn {

// What the gradient is of. Several batches of one step are added up, and divided by their labelled rows after that.
enum class LossScale { kMean, kSum };

enum class RegressionLoss { kSquared, kAbsolute };

// How numbers are learnt: as (value - mean) / scale, so that the learning rate does not depend on their unit.
struct TargetScaling {
  double mean = 0, scale = 1;

  double to_output(double value) const { return (value - mean) / scale; }
  double to_value(double output) const { return output * scale + mean; }
};

class Loss {
 public:
  // For labels that are numbers.
  void set_regression(RegressionLoss kind, const TargetScaling& target) {
    regression_ = kind;
    target_ = target;
  }
  // One per class: a row of one class counts so often, a set bit of several the same (an unset one once). The mean is
  // still over the rows.
  void weigh_classes(std::vector<float> weights) { weights_ = std::move(weights); }
  void reserve(size_t rows) { block_sums_.reserve_discarding(rows / kBlockRows + 1); }
  // Replaces the logits by the gradient of the loss, or of its sum over the labelled rows; rows without a label get
  // zero. Returns the loss, the mean in any case.
  double replace_by_gradient(const Batch& batch, const Labels& labels, kernels::Matrix logits, LossScale scale);

 private:
  static constexpr size_t kBlockRows = 64;
  double replace_row(float* row, size_t columns, const Labels& labels, NodeId node, float scale) const;

  RegressionLoss regression_ = RegressionLoss::kSquared;
  TargetScaling target_;
  std::vector<float> weights_;  // empty: all the same
  Buffer<double> block_sums_;
};

}  // namespace cgcn
