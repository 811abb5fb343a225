// A temperature for probabilities, chosen on the validation nodes (Guo et al., 2017): that of the least loss of
// logits / T; convex in 1/T, found by Newton's steps between bounds.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "graph/dataset.h"
#include "train/output_rule.h"
#include "train/slab_matrix.h"

namespace cgcn {

// Takes the rows of the labelled validation nodes out of those that pass, and fits a temperature to them.
class TemperatureFit {
 public:
  // They are kept in a file if they take more than `memory`. data outlives it.
  TemperatureFit(const Dataset& data, uint64_t memory);
  // Of nodes first … first + rows.rows; called for all nodes, rising.
  void add(kernels::ConstMatrix rows, NodeId first);
  size_t nodes() const { return nodes_.size(); }
  // What n nodes leave open of a label: one of n + 2 may be wrong, even if all n are right. Without it the temperature
  // of nodes that are all right would be 0, and probabilities of the other nodes 0 or 1.
  double doubt() const { return 1 / (static_cast<double>(nodes_.size()) + 2); }

  struct Fitted {
    double temperature;  // from 0.01 to 100
    double loss;         // the sum over the nodes
  };
  // to_logits: what makes logits of a row that was added; none: they are. doubt: a share of each label that is spread
  // over all classes. Nothing if no validation node has a label.
  using RowMap = std::function<void(std::span<float>)>;
  std::optional<Fitted> fit(const RowMap& to_logits, double doubt) const;

 private:
  struct Slope;
  Slope slope_at(double b, const RowMap& to_logits, double doubt) const;

  const Dataset& data_;
  std::vector<NodeId> nodes_;  // of the rows
  SlabMatrix rows_;
  size_t added_ = 0;
};

}  // namespace cgcn
