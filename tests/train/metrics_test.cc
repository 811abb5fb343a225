// Scores against the definitions, written the slow way.
#include "train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "common/random.h"
#include "common/threads.h"

namespace cgcn {
namespace {

struct Case {
  uint32_t num_classes;
  std::vector<float> logits;
  Labels labels;
  std::vector<NodeId> nodes;
};

Case random_single(uint32_t nodes, uint32_t classes, uint64_t seed) {
  Case made{classes, {}, {}, {}};
  Random random(seed, Purpose::kTest);
  std::vector<int32_t> labels(nodes);
  for (uint32_t v = 0; v < nodes; ++v) {
    labels[v] = static_cast<int32_t>(random.below(classes + 1)) - 1;
    if (random.below(3) > 0) made.nodes.push_back(v);
    for (uint32_t c = 0; c < classes; ++c) made.logits.push_back(4 * random.normal());
  }
  made.labels = Labels::single(std::move(labels), classes);
  return made;
}

Case random_multi(uint32_t nodes, uint32_t classes, uint64_t seed) {
  Case made{classes, {}, {}, {}};
  Random random(seed, Purpose::kTest);
  std::vector<uint8_t> bits(nodes * Labels::row_bytes(classes));
  for (uint32_t v = 0; v < nodes; ++v) {
    if (random.below(3) > 0) made.nodes.push_back(v);
    for (uint32_t c = 0; c < classes; ++c) {
      const bool label = random.below(3) == 0;
      if (label) bits[v * Labels::row_bytes(classes) + c / 8] |= static_cast<uint8_t>(1 << (c % 8));
      made.logits.push_back(random.normal() + (label ? 0.7f : -0.7f));
    }
  }
  made.labels = Labels::multi(std::move(bits), classes);
  return made;
}

Tally tally_of(const Case& made, size_t piece) {
  Tally tally(made.num_classes, made.labels.multi_label());
  for (size_t i = 0; i < made.nodes.size(); i += piece)
    tally.add(made.logits.data(), made.num_classes, 0,
              std::span(made.nodes).subspan(i, std::min(piece, made.nodes.size() - i)), made.labels);
  return tally;
}

TEST(Metrics, SingleLabelMatchesDefinition) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const uint32_t classes = 2 + seed % 7;
    const Case made = random_single(50 + 173 * static_cast<uint32_t>(seed), classes, seed);
    double loss = 0;
    uint64_t right = 0, nodes = 0;
    std::vector<double> truth(classes), predicted(classes), hit(classes);
    for (const NodeId v : made.nodes) {
      const int32_t label = made.labels.class_of(v);
      if (label < 0) continue;
      const float* row = &made.logits[size_t{v} * classes];
      double sum = 0;
      for (uint32_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]));
      loss -= std::log(std::exp(static_cast<double>(row[label])) / sum);
      const auto guess = std::max_element(row, row + classes) - row;
      ++nodes;
      right += guess == label;
      truth[static_cast<size_t>(label)]++;
      predicted[static_cast<size_t>(guess)]++;
      if (guess == label) hit[static_cast<size_t>(label)]++;
    }
    double macro = 0, present = 0;
    for (uint32_t c = 0; c < classes; ++c) {
      if (truth[c] + predicted[c] == 0) continue;
      present++;
      macro += 2 * hit[c] / (truth[c] + predicted[c]);
    }
    const Tally tally = tally_of(made, 1 + seed * 40);
    const Scores scores = tally.scores();
    EXPECT_EQ(scores.nodes, nodes);
    EXPECT_NEAR(scores.loss, loss / static_cast<double>(nodes), 1e-9);
    EXPECT_DOUBLE_EQ(scores.accuracy, static_cast<double>(right) / static_cast<double>(nodes));
    EXPECT_DOUBLE_EQ(scores.micro_f1, scores.accuracy);  // one class per node: the same thing
    EXPECT_NEAR(scores.macro_f1, macro / present, 1e-12);
    EXPECT_EQ(std::accumulate(tally.confusion().begin(), tally.confusion().end(), uint64_t{0}), nodes);
    for (uint32_t c = 0; c < classes; ++c) {
      EXPECT_EQ(tally.confusion()[c * classes + c], tally.classes()[c].true_positives);
      EXPECT_EQ(static_cast<double>(tally.classes()[c].support()), truth[c]);
    }
  }
}

TEST(Metrics, MultiLabelMatchesDefinition) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const uint32_t classes = 1 + static_cast<uint32_t>(seed * 5);
    const Case made = random_multi(40 + 130 * static_cast<uint32_t>(seed), classes, seed);
    double loss = 0, macro = 0, present = 0;
    uint64_t exact = 0, hits = 0, wrong = 0, missed = 0;
    std::vector<uint64_t> hit(classes), extra(classes), miss(classes);
    for (const NodeId v : made.nodes) {
      bool all = true;
      for (uint32_t c = 0; c < classes; ++c) {
        const double z = made.logits[size_t{v} * classes + c], share = 1 / (1 + std::exp(-z));
        const bool label = made.labels.has(v, c), guess = z > 0;
        loss -= std::log(label ? share : 1 - share) / classes;
        hit[c] += label && guess;
        extra[c] += guess && !label;
        miss[c] += label && !guess;
        all = all && label == guess;
      }
      exact += all;
    }
    for (uint32_t c = 0; c < classes; ++c) {
      hits += hit[c];
      wrong += extra[c];
      missed += miss[c];
      if (hit[c] + extra[c] + miss[c] == 0) continue;
      present++;
      const double precision = hit[c] + extra[c] == 0 ? 0 : double(hit[c]) / double(hit[c] + extra[c]);
      const double recall = hit[c] + miss[c] == 0 ? 0 : double(hit[c]) / double(hit[c] + miss[c]);
      macro += hit[c] == 0 ? 0 : 2 * precision * recall / (precision + recall);
    }
    const Scores scores = tally_of(made, 7 + seed * 100).scores();
    EXPECT_NEAR(scores.loss, loss / static_cast<double>(made.nodes.size()), 1e-6);
    EXPECT_DOUBLE_EQ(scores.accuracy, double(exact) / double(made.nodes.size()));
    EXPECT_DOUBLE_EQ(scores.micro_f1, double(2 * hits) / double(2 * hits + wrong + missed));
    EXPECT_NEAR(scores.macro_f1, macro / present, 1e-12);
  }
}

TEST(Metrics, ThreadsDoNotChangeABit) {
  const Case single = random_single(20'000, 7, 1), multi = random_multi(9'000, 20, 2);
  set_thread_count(1);
  const double one = tally_of(single, 100'000).scores().loss, other = tally_of(multi, 100'000).scores().loss;
  set_thread_count(4);
  EXPECT_EQ(tally_of(single, 100'000).scores().loss, one);
  EXPECT_EQ(tally_of(multi, 100'000).scores().loss, other);
  set_thread_count(0);
}

TEST(Metrics, LossesStayFiniteForLargeLogits) {
  const std::vector<float> logits = {1e30f, -1e30f, 0};
  EXPECT_EQ(softmax_loss(logits, 0), 0);
  EXPECT_EQ(softmax_loss(logits, 1), 2.0 * 1e30f);
  EXPECT_EQ(sigmoid_loss(1e30f, true), 0);
  EXPECT_EQ(sigmoid_loss(-1e30f, true), 1e30f);
}

TEST(Metrics, MacroF1LeavesOutClassesThatNobodyHas) {
  const Case made{4, {9, 0, 0, 0, 0, 0, 9, 0, 0, 9, 0, 0}, Labels::single(std::vector<int32_t>{0, 0, 1}, 4), {0, 1, 2}};
  // Class 0: one of two found; 1: found; 2: predicted only, which counts as 0; 3: neither.
  EXPECT_DOUBLE_EQ(tally_of(made, 3).scores().macro_f1, (2.0 / 3 + 1 + 0) / 3);
}

TEST(Metrics, NothingScoredIsZeroNotNan) {
  const Scores scores = Tally(3, false).scores();
  EXPECT_EQ(scores.nodes, 0u);
  EXPECT_EQ(scores.loss, 0);
  EXPECT_EQ(scores.macro_f1, 0);
}

}  // namespace
}  // namespace cgcn
