// What is chosen on the validation nodes once a model is trained: a temperature for its probabilities (Guo et al.,
// 2017), and a threshold for each class of a multi-label model.
//
//   temperature T:  the loss of logits / T is least; convex in 1/T, found by Newton's steps between bounds
//   thresholds:     each class's own F1 is highest (ranking.h)
#pragma once

#include <optional>
#include <vector>

#include "graph/dataset.h"
#include "train/output_rule.h"
#include "train/slab_matrix.h"

namespace cgcn {

// Takes the logits of the labelled validation nodes out of those that pass, and fits a temperature to them.
class TemperatureFit {
 public:
  // They are kept in a file if they take more than `memory`. data outlives it.
  TemperatureFit(const Dataset& data, uint64_t memory);
  // Of nodes first … first + logits.rows; called for all nodes, rising.
  void add(kernels::ConstMatrix logits, NodeId first);
  // From 0.01 to 100; nothing if no validation node has a label.
  std::optional<double> fit() const;

 private:
  struct Slope;
  Slope slope_at(double b) const;

  const Dataset& data_;
  std::vector<NodeId> nodes_;  // of the rows
  SlabMatrix rows_;
  size_t added_ = 0;
};

// memory: see for_each_ranked_class().
std::vector<float> choose_thresholds(const SlabMatrix& logits, const Dataset& data, uint64_t memory);

}  // namespace cgcn
