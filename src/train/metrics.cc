#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kScoredRows = 1024;  // rows a task

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

double ratio(uint64_t count, uint64_t total) {
  return total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
}

}  // namespace

double ClassCounts::precision() const { return ratio(true_positives, true_positives + false_positives); }
double ClassCounts::recall() const { return ratio(true_positives, support()); }
double ClassCounts::f1() const {
  return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
}

void to_json(nlohmann::json& json, const Scores& scores) {
  if (scores.regression) {
    json = {{"nodes", scores.nodes},
            {"loss", scores.loss},
            {"r2", scores.regression->r2},
            {"mae", scores.regression->mae},
            {"rmse", scores.regression->rmse}};
    return;
  }
  json = {{"nodes", scores.nodes},       {"loss", scores.loss},
          {"accuracy", scores.accuracy}, {"micro_f1", scores.micro_f1},
          {"macro_f1", scores.macro_f1}, {"calibration_error", scores.calibration_error}};
  if (scores.calibrated_error) json["calibrated_error"] = *scores.calibrated_error;
  if (scores.roc_auc) json["roc_auc"] = *scores.roc_auc;
  if (scores.average_precision) json["average_precision"] = *scores.average_precision;
}

void CalibrationBins::add(double confidence, bool right) {
  Bin& bin = bins_[std::min(kBins - 1, static_cast<size_t>(confidence * kBins))];
  ++bin.count;
  bin.right += right;
  bin.confidence += confidence;
}

void CalibrationBins::add(const CalibrationBins& other) {
  for (size_t b = 0; b < kBins; ++b) {
    bins_[b].count += other.bins_[b].count;
    bins_[b].right += other.bins_[b].right;
    bins_[b].confidence += other.bins_[b].confidence;
  }
}

double CalibrationBins::error() const {
  uint64_t total = 0;
  double difference = 0;
  for (const Bin& bin : bins_) {
    total += bin.count;
    difference += std::abs(static_cast<double>(bin.right) - bin.confidence);
  }
  return total == 0 ? 0 : difference / static_cast<double>(total);
}

uint32_t largest_class(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

namespace {

// Of the logits, each divided by the temperature, over that of the largest: one by its probability.
double sum_of_exponentials(std::span<const float> logits, double temperature = 1) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp((z - largest) / temperature);
  return sum;
}

double softmax_loss(std::span<const float> logits, uint32_t label, double sum) {
  return std::log(sum) + logits[largest_class(logits)] - logits[label];
}

}  // namespace

double softmax_loss(std::span<const float> logits, uint32_t label) {
  return softmax_loss(logits, label, sum_of_exponentials(logits));
}

double sigmoid_loss(float logit, bool label) {
  const double z = label ? -static_cast<double>(logit) : static_cast<double>(logit);
  return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
}

Tally::Tally(uint32_t num_classes, bool multi_label)
    : num_classes_(num_classes), multi_label_(multi_label), classes_(num_classes) {
  if (!multi_label && num_classes <= kConfusionLimit) confusion_.resize(size_t{num_classes} * num_classes);
}

void Tally::add(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                const Labels& labels, const OutputRule& rule) {
  CGCN_CHECK(labels.num_classes() == num_classes_ && labels.multi_label() == multi_label_);
  has_temperature_ = rule.temperature.has_value();
  if (labels.regression()) return add_numbers(logits, stride, first_node, nodes, labels, rule);
  if (multi_label_)
    add_multi(logits, stride, first_node, nodes, labels, rule);
  else
    add_single(logits, stride, first_node, nodes, labels, rule);
}

void Tally::add_single(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                       const Labels& labels, const OutputRule& rule) {
  std::vector<double> losses(nodes.size()), confidences(nodes.size()), calibrated(nodes.size());
  std::vector<uint32_t> predictions(nodes.size());
  parallel_blocks(nodes.size(), kScoredRows, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const int32_t label = labels.class_of(nodes[i]);
      if (label < 0) continue;
      const std::span<const float> row(logits + size_t{nodes[i] - first_node} * stride, num_classes_);
      const double sum = sum_of_exponentials(row);
      losses[i] = softmax_loss(row, static_cast<uint32_t>(label), sum);
      predictions[i] = largest_class(row);
      confidences[i] = 1 / sum;
      if (rule.temperature) calibrated[i] = 1 / sum_of_exponentials(row, *rule.temperature);
    }
  });
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (labels.class_of(nodes[i]) < 0) continue;
    const auto label = static_cast<uint32_t>(labels.class_of(nodes[i]));
    ++nodes_;
    loss_ += losses[i];
    as_given_.add(confidences[i], label == predictions[i]);
    if (rule.temperature) calibrated_.add(calibrated[i], label == predictions[i]);
    if (!confusion_.empty()) ++confusion_[size_t{label} * num_classes_ + predictions[i]];
    if (label == predictions[i]) {
      ++exact_;
      ++classes_[label].true_positives;
    } else {
      ++classes_[label].false_negatives;
      ++classes_[predictions[i]].false_positives;
    }
  }
}

void Tally::add_multi(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                      const Labels& labels, const OutputRule& rule) {
  struct BlockCounts {
    std::vector<ClassCounts> classes;
    CalibrationBins as_given, calibrated;
    double loss = 0;
    uint64_t exact = 0;
  };
  std::vector<BlockCounts> counted((nodes.size() + kScoredRows - 1) / kScoredRows);
  parallel_blocks(nodes.size(), kScoredRows, [&](size_t begin, size_t end) {
    BlockCounts& block = counted[begin / kScoredRows];
    block.classes.resize(num_classes_);
    for (size_t i = begin; i < end; ++i) {
      const float* row = logits + size_t{nodes[i] - first_node} * stride;
      double loss = 0;
      bool exact = true;
      for (uint32_t c = 0; c < num_classes_; ++c) {
        const bool label = labels.has(nodes[i], c), predicted = row[c] > rule.threshold(c);
        block.as_given.add(sigmoid(row[c]), label);
        if (rule.temperature) block.calibrated.add(sigmoid(row[c] / *rule.temperature), label);
        loss += sigmoid_loss(row[c], label);
        block.classes[c].true_positives += label && predicted;
        block.classes[c].false_positives += !label && predicted;
        block.classes[c].false_negatives += label && !predicted;
        exact = exact && label == predicted;
      }
      block.loss += loss / num_classes_;
      block.exact += exact;
    }
  });
  for (const BlockCounts& block : counted) {
    for (uint32_t c = 0; c < num_classes_; ++c) {
      classes_[c].true_positives += block.classes[c].true_positives;
      classes_[c].false_positives += block.classes[c].false_positives;
      classes_[c].false_negatives += block.classes[c].false_negatives;
    }
    loss_ += block.loss;
    exact_ += block.exact;
    as_given_.add(block.as_given);
    calibrated_.add(block.calibrated);
  }
  nodes_ += nodes.size();
}

// The loss is that of squared errors, in the unit that was learnt.
void Tally::add_numbers(const float* outputs, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                        const Labels& labels, const OutputRule& rule) {
  numbers_.used = true;
  for (const NodeId v : nodes) {
    if (!labels.known(v)) continue;
    ++nodes_;
    const double value = labels.value_of(v);
    const double error = value - rule.target.to_value(outputs[size_t{v - first_node} * stride]);
    const double distance = value - rule.target.mean;
    numbers_.absolute += std::abs(error);
    numbers_.squared += error * error;
    numbers_.distance += distance;
    numbers_.squared_distance += distance * distance;
    loss_ += error * error / (rule.target.scale * rule.target.scale);
  }
}

// Value by value: the bytes between the members of a struct are no part of it.
std::string Tally::pack() const {
  std::string packed;
  const auto add = [&](const auto* values, size_t count) {
    packed.append(reinterpret_cast<const char*>(values), count * sizeof *values);
  };
  add(&nodes_, 1);
  add(&exact_, 1);
  add(&loss_, 1);
  add(&as_given_, 1);
  add(&calibrated_, 1);
  add(&has_temperature_, 1);
  const bool ranked = ranking_.has_value();
  const RankScores ranking = ranking_.value_or(RankScores());
  add(&ranked, 1);
  add(&ranking, 1);
  add(&numbers_.used, 1);
  for (const double* sum : {&numbers_.absolute, &numbers_.squared, &numbers_.distance, &numbers_.squared_distance})
    add(sum, 1);
  add(classes_.data(), classes_.size());
  add(confusion_.data(), confusion_.size());
  return packed;
}

void Tally::unpack(const std::string& packed) {
  CGCN_CHECK(packed.size() == pack().size());
  const char* from = packed.data();
  const auto take = [&](auto* values, size_t count) {
    if (count > 0) std::memcpy(values, from, count * sizeof *values);
    from += count * sizeof *values;
  };
  take(&nodes_, 1);
  take(&exact_, 1);
  take(&loss_, 1);
  take(&as_given_, 1);
  take(&calibrated_, 1);
  take(&has_temperature_, 1);
  bool ranked = false;
  RankScores ranking;
  take(&ranked, 1);
  take(&ranking, 1);
  ranking_ = ranked ? std::optional(ranking) : std::nullopt;
  take(&numbers_.used, 1);
  for (double* sum : {&numbers_.absolute, &numbers_.squared, &numbers_.distance, &numbers_.squared_distance})
    take(sum, 1);
  take(classes_.data(), classes_.size());
  take(confusion_.data(), confusion_.size());
}

Scores Tally::scores() const {
  Scores scores;
  scores.nodes = nodes_;
  if (nodes_ == 0) return scores;
  scores.loss = loss_ / static_cast<double>(nodes_);
  if (numbers_.used) {
    const auto count = static_cast<double>(nodes_);
    const double spread = numbers_.squared_distance - numbers_.distance * numbers_.distance / count;
    const double r2 = spread > 0 ? 1 - numbers_.squared / spread : numbers_.squared == 0 ? 1 : 0;
    scores.regression = {r2, numbers_.absolute / count, std::sqrt(numbers_.squared / count)};
    return scores;
  }
  scores.accuracy = ratio(exact_, nodes_);
  scores.calibration_error = as_given_.error();
  if (has_temperature_) scores.calibrated_error = calibrated_.error();
  if (ranking_) {
    scores.roc_auc = ranking_->roc_auc;
    scores.average_precision = ranking_->average_precision;
  }
  ClassCounts all;
  uint32_t present = 0;
  for (const ClassCounts& counts : classes_) {
    all.true_positives += counts.true_positives;
    all.false_positives += counts.false_positives;
    all.false_negatives += counts.false_negatives;
    if (counts.support() + counts.false_positives == 0) continue;
    ++present;
    scores.macro_f1 += counts.f1();
  }
  scores.micro_f1 = all.f1();
  if (present > 0) scores.macro_f1 /= present;
  return scores;
}

}  // namespace cgcn
