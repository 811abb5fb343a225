// Scores of predictions against labels: micro and macro F1, accuracy, loss, calibration, counts per class, confusion
// matrix.
//
// One class per node: the prediction is the largest logit. Many: a class is predicted if its logit is above its
// threshold (0 unless one was chosen, output_rule.h), and micro F1 counts all bits of all nodes together. Macro F1 is
// the mean over the classes that occur in labels or predictions.
//
// The expected calibration error is Σ_b (n_b / n)·|share right in b - mean confidence in b| over 15 bins of equal width
// of the confidence: the probability of the predicted class, or, with many classes, of every single bit.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/dataset.h"
#include "train/output_rule.h"

namespace cgcn {

struct ClassCounts {
  uint64_t true_positives = 0, false_positives = 0, false_negatives = 0;
  uint64_t support() const { return true_positives + false_negatives; }
  double precision() const;
  double recall() const;
  double f1() const;
};

// Of numbers: R² = 1 - Σ(value - prediction)² / Σ(value - mean)², mean absolute and root of the mean squared error.
struct RegressionScores {
  double r2 = 0, mae = 0, rmse = 0;
};

struct Scores {
  uint64_t nodes = 0;
  double loss = 0;      // mean over the nodes; with many classes per node, the mean over classes as well
  double accuracy = 0;  // nodes with everything right
  double micro_f1 = 0, macro_f1 = 0;
  double calibration_error = 0;                      // expected, of the probabilities as the model gives them
  std::optional<double> calibrated_error;            // the same after the temperature, if one was fitted
  std::optional<RegressionScores> regression;        // of numbers; then there are no others but the loss
  std::optional<double> roc_auc, average_precision;  // if they were asked for (ranking.h)
};

// The scores that are ranks of nodes, not counts: mean over the classes that have them.
struct RankScores {
  double roc_auc = 0, average_precision = 0;
};

// Confidences and how often they were right.
class CalibrationBins {
 public:
  void add(double confidence, bool right);
  void add(const CalibrationBins& other);
  double error() const;

 private:
  static constexpr size_t kBins = 15;
  struct Bin {
    uint64_t count = 0, right = 0;
    double confidence = 0;
  };
  std::array<Bin, kBins> bins_;
};

void to_json(nlohmann::json& json, const Scores& scores);

// Adds up nodes in any number of pieces. The pieces must come in the same order for the same last bit of the loss; the
// number of threads does not matter.
class Tally {
 public:
  static constexpr uint32_t kConfusionLimit = 512;  // more classes: no matrix is kept

  Tally(uint32_t num_classes, bool multi_label);

  // Row nodes[i] - first_node of logits belongs to nodes[i]. Nodes without a label are passed over. The rule is the
  // same in all calls.
  void add(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes, const Labels& labels,
           const OutputRule& rule = {});
  void set_ranking(const RankScores& ranking) { ranking_ = ranking; }

  // As bytes, for other ranks of a group.
  std::string pack() const;
  void unpack(const std::string& packed);  // of a tally of as many classes

  Scores scores() const;
  const std::vector<ClassCounts>& classes() const { return classes_; }
  // Row: the label, column: the prediction; num_classes × num_classes, or empty if there is none.
  const std::vector<uint64_t>& confusion() const { return confusion_; }
  uint32_t num_classes() const { return num_classes_; }
  bool multi_label() const { return multi_label_; }
  bool regression() const { return numbers_.used; }

 private:
  void add_single(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                  const Labels& labels, const OutputRule& rule);
  void add_multi(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                 const Labels& labels, const OutputRule& rule);
  void add_numbers(const float* outputs, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                   const Labels& labels, const OutputRule& rule);
  uint32_t num_classes_;
  bool multi_label_;
  // Sums over nodes of numbers: errors, and distances of the labels from a fixed place.
  struct NumberSums {
    bool used = false;
    double absolute = 0, squared = 0, distance = 0, squared_distance = 0;
  } numbers_;
  uint64_t nodes_ = 0, exact_ = 0;
  double loss_ = 0;
  CalibrationBins as_given_, calibrated_;
  bool has_temperature_ = false;
  std::optional<RankScores> ranking_;
  std::vector<ClassCounts> classes_;
  std::vector<uint64_t> confusion_;
};

// The class of a row of logits: the largest, the first of equals.
uint32_t largest_class(std::span<const float> logits);
// -log softmax(logits)[label], stable for any finite logits.
double softmax_loss(std::span<const float> logits, uint32_t label);
// log(1 + exp(-z)) for a bit that is set, log(1 + exp(z)) for one that is not.
double sigmoid_loss(float logit, bool label);

}  // namespace cgcn
