#include "nn/loss.h"

#include <algorithm>
#include <cmath>

#include "common/threads.h"
#include "kernels/cross_entropy.h"

namespace cgcn {

double Loss::replace_row(float* row, size_t columns, const Labels& labels, NodeId node, float scale) const {
  if (labels.regression()) {
    const double error = row[0] - target_.to_output(labels.value_of(node));
    const bool squared = regression_ == RegressionLoss::kSquared;
    row[0] = static_cast<float>(squared ? 2 * error * scale : error > 0 ? scale : error < 0 ? -scale : 0);
    return squared ? error * error : std::abs(error);
  }
  if (labels.multi_label()) {
    const uint8_t* bits = labels.bit_row(node).data();
    return weights_.empty() ? kernels::sigmoid_cross_entropy(row, columns, bits, scale)
                            : kernels::weighted_sigmoid_cross_entropy(row, columns, bits, weights_.data(), scale);
  }
  const auto label = static_cast<uint32_t>(labels.class_of(node));
  if (weights_.empty()) return kernels::softmax_cross_entropy(row, columns, label, scale);
  const float weight = weights_[label];
  return weight * kernels::softmax_cross_entropy(row, columns, label, weight * scale);
}

double Loss::replace_by_gradient(const Batch& batch, const Labels& labels, kernels::Matrix logits,
                                 LossScale loss_scale) {
  const auto loss_rows = batch.loss_rows;
  const double classes = labels.multi_label() ? static_cast<double>(labels.num_classes()) : 1.0;
  const double terms = static_cast<double>(loss_rows.size()) * classes;
  const auto scale =
      loss_rows.empty() ? 0.0f : static_cast<float>(1 / (loss_scale == LossScale::kMean ? terms : classes));
  parallel_blocks(logits.rows, kBlockRows, [&](size_t begin, size_t end) {
    auto labelled = std::lower_bound(loss_rows.begin(), loss_rows.end(), begin);
    double sum = 0;
    for (size_t r = begin; r < end; ++r) {
      float* row = logits.row(r);
      if (labelled == loss_rows.end() || *labelled != r) {
        std::fill_n(row, logits.columns, 0.0f);
        continue;
      }
      ++labelled;
      const NodeId node = batch.inputs[r];
      sum += replace_row(row, logits.columns, labels, node, scale);
    }
    block_sums_[begin / kBlockRows] = sum;
  });
  double total = 0;
  for (size_t block = 0; block * kBlockRows < logits.rows; ++block) total += block_sums_[block];
  return loss_rows.empty() ? 0 : total / terms;
}

}  // namespace cgcn
