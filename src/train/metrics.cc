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

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double ClassCounts::precision() const { return ratio(true_positives, true_positives + false_positives); }
double ClassCounts::recall() const { return ratio(true_positives, support()); }
double ClassCounts::f1() const {
  return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
}

void to_json(nlohmann::json& json, const Scores& scores) {
  json = {{"nodes", scores.nodes},
          {"loss", scores.loss},
          {"accuracy", scores.accuracy},
          {"micro_f1", scores.micro_f1},
          {"macro_f1", scores.macro_f1}};
}

uint32_t largest_class(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double softmax_loss(std::span<const float> logits, uint32_t label) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(z - largest);
  return std::log(sum) + largest - logits[label];
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
                const Labels& labels) {
  CGCN_CHECK(labels.num_classes() == num_classes_ && labels.multi_label() == multi_label_);
  if (multi_label_)
    add_multi(logits, stride, first_node, nodes, labels);
  else
    add_single(logits, stride, first_node, nodes, labels);
}

void Tally::add_single(const float* logits, size_t stride, NodeId first_node, std::span<const NodeId> nodes,
                       const Labels& labels) {
  std::vector<double> losses(nodes.size());
  std::vector<uint32_t> predictions(nodes.size());
  parallel_blocks(nodes.size(), kScoredRows, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const int32_t label = labels.class_of(nodes[i]);
      if (label < 0) continue;
      const std::span<const float> row(logits + size_t{nodes[i] - first_node} * stride, num_classes_);
      losses[i] = softmax_loss(row, static_cast<uint32_t>(label));
      predictions[i] = largest_class(row);
    }
  });
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (labels.class_of(nodes[i]) < 0) continue;
    const auto label = static_cast<uint32_t>(labels.class_of(nodes[i]));
    ++nodes_;
    loss_ += losses[i];
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
                      const Labels& labels) {
  struct BlockCounts {
    std::vector<ClassCounts> classes;
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
        const bool label = labels.has(nodes[i], c), predicted = row[c] > 0;
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
  }
  nodes_ += nodes.size();
}

std::string Tally::pack() const {
  std::string packed;
  const auto add = [&](const auto* values, size_t count) {
    packed.append(reinterpret_cast<const char*>(values), count * sizeof *values);
  };
  add(&nodes_, 1);
  add(&exact_, 1);
  add(&loss_, 1);
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
  take(classes_.data(), classes_.size());
  take(confusion_.data(), confusion_.size());
}

Scores Tally::scores() const {
  Scores scores;
  scores.nodes = nodes_;
  if (nodes_ == 0) return scores;
  scores.loss = loss_ / static_cast<double>(nodes_);
  scores.accuracy = ratio(exact_, nodes_);
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
