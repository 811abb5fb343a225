// ROC-AUC, average precision, thresholds and temperature against their definitions, written the slow way.
#include "train/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "common/random.h"
#include "common/threads.h"
#include "train/calibration.h"
#include "train/graph_share.h"
#include "train/thresholds.h"

namespace cgcn {
namespace {

// Few distinct values, so that there are ties.
std::vector<float> draw(size_t count, float shift, uint64_t seed) {
  Random random(seed, Purpose::kTest);
  std::vector<float> values(count);
  for (float& value : values) value = std::round(8 * (random.normal() + shift)) / 8;
  std::sort(values.begin(), values.end());
  return values;
}

double slow_auc(const std::vector<float>& with, const std::vector<float>& without) {
  double right = 0;
  for (const float a : with)
    for (const float b : without) right += a > b ? 1 : a == b ? 0.5 : 0;
  return right / static_cast<double>(with.size() * without.size());
}

double slow_precision(const std::vector<float>& with, const std::vector<float>& without) {
  std::map<float, bool, std::greater<>> levels;
  for (const float z : with) levels[z];
  for (const float z : without) levels[z];
  double sum = 0, before = 0;
  for (const auto& [level, unused] : levels) {
    const auto above = [level = level](const std::vector<float>& values) {
      return static_cast<double>(std::count_if(values.begin(), values.end(), [&](float z) { return z >= level; }));
    };
    const double hits = above(with), recall = hits / static_cast<double>(with.size());
    sum += (recall - before) * hits / (hits + above(without));
    before = recall;
  }
  return sum;
}

TEST(Ranking, EqualsItsDefinition) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto with = draw(1 + seed * 3, 0.4f, 2 * seed), without = draw(1 + seed * 7, -0.3f, 2 * seed + 1);
    EXPECT_NEAR(roc_auc({with, without}), slow_auc(with, without), 1e-12);
    EXPECT_NEAR(average_precision({with, without}), slow_precision(with, without), 1e-12);
  }
}

struct Problem {
  Dataset data;
  SlabMatrix whole, spilled;

  Problem(NodeId nodes, uint32_t classes, bool multi_label) {
    Random random(7, Purpose::kTest);
    std::vector<uint8_t> split(nodes), bits(multi_label ? nodes * Labels::row_bytes(classes) : 0);
    std::vector<int32_t> labels(multi_label ? 0 : nodes);
    whole = SlabMatrix(nodes, classes, 0);
    spilled = SlabMatrix(nodes, classes, 3);
    for (NodeId v = 0; v < nodes; ++v) {
      split[v] = random.below(5) == 0 ? 255 : static_cast<uint8_t>(random.below(3));
      const auto label = static_cast<uint32_t>(random.below(classes));
      if (!multi_label) labels[v] = random.below(9) == 0 ? -1 : static_cast<int32_t>(label);
      float* row = whole.matrix().row(v);
      for (uint32_t c = 0; c < classes; ++c) {
        const bool has = multi_label ? random.below(4) == 0 : c == label;
        if (multi_label && has) bits[v * Labels::row_bytes(classes) + c / 8] |= static_cast<uint8_t>(1u << (c % 8));
        row[c] = 3 * random.normal() + (has ? 2.0f : 0.0f);
      }
      spilled.write_rows({v, v + 1}, row);
    }
    data.graph = CsrGraph(std::vector<EdgeOffset>(nodes + 1, 0), std::vector<NodeId>(), std::vector<float>(), false);
    data.split = std::move(split);
    data.labels = multi_label ? Labels::multi(std::move(bits), classes) : Labels::single(std::move(labels), classes);
  }
};

// As an evaluation does it: rows pass a few at a time.
double fit_temperature(const SlabMatrix& logits, const Dataset& data, uint64_t memory = uint64_t{1} << 30) {
  TemperatureFit fit(data, memory);
  GraphShare(data.graph).collect(logits, 700, [&](auto rows, NodeId first) { fit.add(rows, first); });
  return fit.fit({}, fit.doubt()).value().temperature;
}

TEST(Ranking, GathersTheSameFromAFileInLittleMemoryOnAnyThreads) {
  const Problem problem(3000, 10, true);
  set_thread_count(1);
  const RankScores expected = *rank_role(problem.whole, problem.data, Role::kTest, uint64_t{1} << 30);
  const auto thresholds = choose_thresholds(problem.whole, problem.data, SelectBy::kMicroF1);
  const double temperature = fit_temperature(problem.whole, problem.data);
  set_thread_count(3);
  for (const uint64_t memory : {uint64_t{0}, uint64_t{30'000}, uint64_t{1} << 30})
    for (const SlabMatrix* logits : {&problem.whole, &problem.spilled}) {
      const RankScores scores = *rank_role(*logits, problem.data, Role::kTest, memory);
      EXPECT_EQ(scores.roc_auc, expected.roc_auc);
      EXPECT_EQ(scores.average_precision, expected.average_precision);
      EXPECT_EQ(choose_thresholds(*logits, problem.data, SelectBy::kMicroF1), thresholds);
      EXPECT_EQ(fit_temperature(*logits, problem.data, memory), temperature);
    }
  set_thread_count(0);
  double area = 0;
  for (uint32_t c = 0; c < 10; ++c) {
    std::vector<float> with, without;
    for (NodeId v = 0; v < 3000; ++v)
      if (problem.data.role(v) == Role::kTest)
        (problem.data.labels.has(v, c) ? with : without).push_back(problem.whole.matrix().row(v)[c]);
    area += slow_auc(with, without) / 10;
  }
  EXPECT_NEAR(expected.roc_auc, area, 1e-12);
}

// Nodes that are all right say that one of n + 2 may be wrong, not that no node can be.
TEST(Temperature, OfNodesThatAreAllRightIsNotZero) {
  for (const bool multi_label : {false, true}) {
    Problem problem(400, 4, multi_label);
    size_t nodes = 0;
    for (NodeId v = 0; v < 400; ++v) {
      if (problem.data.role(v) == Role::kValidation && problem.data.labels.known(v)) ++nodes;
      for (uint32_t c = 0; c < 4; ++c) {
        const Labels& labels = problem.data.labels;
        const bool has = multi_label ? labels.has(v, c) : labels.class_of(v) == static_cast<int32_t>(c);
        problem.whole.matrix().row(v)[c] = has ? 3.0f : -3.0f;
      }
    }
    const double doubt = 1 / (static_cast<double>(nodes) + 2), right = 1 - doubt * (multi_label ? 0.5 : 0.75);
    // Softmax of three lower by 6, or sigmoid of 3, at 1 / T.
    const double expected = multi_label ? std::log(right / (1 - right)) / 3 : std::log(3 * right / (1 - right)) / 6;
    EXPECT_NEAR(1 / fit_temperature(problem.whole, problem.data), expected, 1e-5 * expected);
  }
}

// Counts of the nodes of a role that thresholds predict right and wrong.
ClassCounts count_at(const std::vector<float>& thresholds, const Problem& problem, Role role, uint32_t c) {
  ClassCounts counts;
  for (NodeId v = 0; v < problem.data.num_nodes(); ++v) {
    if (problem.data.role(v) != role) continue;
    const bool has = problem.data.labels.has(v, c);
    const bool predicted = problem.whole.matrix().row(v)[c] > (thresholds.empty() ? 0 : thresholds[c]);
    counts.true_positives += has && predicted;
    counts.false_positives += !has && predicted;
    counts.false_negatives += has && !predicted;
  }
  return counts;
}

double f1_at(const std::vector<float>& thresholds, const Problem& problem, Role role, bool macro) {
  ClassCounts sum;
  double each = 0;
  const uint32_t classes = problem.data.labels.num_classes();
  for (uint32_t c = 0; c < classes; ++c) {
    const ClassCounts counts = count_at(thresholds, problem, role, c);
    sum.true_positives += counts.true_positives;
    sum.false_positives += counts.false_positives;
    sum.false_negatives += counts.false_negatives;
    each += counts.f1() / classes;
  }
  return macro ? each : sum.f1();
}

// Logits of normal noise, 2.5 higher with the class: the thresholds that are right follow the shift of each.
template <class Shift>
void draw_logits(Problem& problem, Shift&& shift) {
  Random random(9, Purpose::kTest);
  for (NodeId v = 0; v < problem.data.num_nodes(); ++v)
    for (uint32_t c = 0; c < problem.data.labels.num_classes(); ++c)
      problem.whole.matrix().row(v)[c] = random.normal() + (problem.data.labels.has(v, c) ? 1.25f : -1.25f) + shift(c);
}

TEST(Thresholds, HaveNearlyTheBestF1AlsoOnOtherNodes) {
  Problem problem(20'000, 5, true);
  draw_logits(problem, [](uint32_t c) { return static_cast<float>(c) - 2; });
  for (const SelectBy by : {SelectBy::kMicroF1, SelectBy::kMacroF1}) {
    const bool macro = by == SelectBy::kMacroF1;
    const std::vector<float> chosen = choose_thresholds(problem.whole, problem.data, by);
    ASSERT_EQ(chosen.size(), 5u);
    for (uint32_t c = 1; c < 5; ++c) EXPECT_NEAR(chosen[c] - chosen[c - 1], 1, 0.6);
    for (const Role role : {Role::kValidation, Role::kTest})
      EXPECT_GT(f1_at(chosen, problem, role, macro), f1_at({}, problem, role, macro) + 0.02);
    // None that differs in one class has a better score on the nodes they were chosen on, but for what classes share.
    const double reached = f1_at(chosen, problem, Role::kValidation, macro);
    for (uint32_t c = 0; c < 5; ++c)
      for (float other = -5; other < 5; other += 0.1f) {
        std::vector<float> changed = chosen;
        changed[c] = other;
        EXPECT_LE(f1_at(changed, problem, Role::kValidation, macro), reached + 2e-3);
      }
  }
}

TEST(Thresholds, OfFewNodesAreThoseOfAllClasses) {
  double gain = 0, own = 0;
  for (const NodeId nodes : {150u, 200u, 250u, 300u, 350u, 400u, 450u, 500u}) {
    Problem problem(nodes, 40, true);  // a class has ten to thirty nodes of validation
    draw_logits(problem, [](uint32_t) { return -2; });
    const std::vector<float> chosen = choose_thresholds(problem.whole, problem.data, SelectBy::kMicroF1);
    gain += f1_at(chosen, problem, Role::kTest, false) - f1_at({}, problem, Role::kTest, false);
    std::vector<float> overfit(40);  // each with the best F1 of its own nodes
    for (uint32_t c = 0; c < 40; ++c) {
      double best = -1;
      for (float threshold = -5; threshold < 5; threshold += 0.1f)
        if (const double f1 = count_at(std::vector<float>(40, threshold), problem, Role::kValidation, c).f1();
            f1 > best) {
          best = f1;
          overfit[c] = threshold;
        }
    }
    own += f1_at(overfit, problem, Role::kTest, false) - f1_at({}, problem, Role::kTest, false);
  }
  EXPECT_GT(gain, 0);
  EXPECT_GT(gain, own + 0.08);  // of eight problems
}

TEST(Thresholds, AreZeroIfNothingIsBetterOrNobodySaysSo) {
  Problem problem(3000, 4, true);
  for (NodeId v = 0; v < 3000; ++v)
    for (uint32_t c = 0; c < 4; ++c) problem.whole.matrix().row(v)[c] = problem.data.labels.has(v, c) ? 1.0f : -1.0f;
  EXPECT_TRUE(choose_thresholds(problem.whole, problem.data, SelectBy::kMicroF1).empty());
  problem.data.split = std::vector<uint8_t>(3000, 0);  // no validation nodes
  EXPECT_TRUE(choose_thresholds(problem.whole, problem.data, SelectBy::kMacroF1).empty());
}

TEST(Thresholds, OfManyClassesAreOneForAll) {
  Problem problem(400, kMostThresholds + 1, true);
  const std::vector<float> chosen = choose_thresholds(problem.whole, problem.data, SelectBy::kMacroF1);
  ASSERT_EQ(chosen.size(), kMostThresholds + 1u);
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), chosen[0]), kMostThresholds + 1);
  EXPECT_GT(chosen[0], 0);  // one of four has a class
}

TEST(Calibration, TheTemperatureHasTheLeastLoss) {
  for (const bool multi_label : {false, true}) {
    const Problem problem(2000, 6, multi_label);
    const Labels& labels = problem.data.labels;
    const auto loss_at = [&](double temperature) {
      double loss = 0;
      std::vector<float> row(6);
      for (NodeId v = 0; v < 2000; ++v) {
        if (problem.data.role(v) != Role::kValidation) continue;
        for (uint32_t c = 0; c < 6; ++c) row[c] = static_cast<float>(problem.whole.matrix().row(v)[c] / temperature);
        if (!multi_label && labels.class_of(v) >= 0)
          loss += softmax_loss(row, static_cast<uint32_t>(labels.class_of(v)));
        for (uint32_t c = 0; multi_label && c < 6; ++c) loss += sigmoid_loss(row[c], labels.has(v, c));
      }
      return loss;
    };
    const double temperature = fit_temperature(problem.whole, problem.data), loss = loss_at(temperature);
    EXPECT_GT(temperature, 1.5);  // the logits are too sure of themselves
    for (double other = 0.3; other < 30; other *= 1.05) EXPECT_LE(loss, loss_at(other) + 1e-3);
  }
}

TEST(Calibration, ErrorIsThatOfTheBins) {
  CalibrationBins bins;
  for (int i = 0; i < 10; ++i) bins.add(0.95, i < 8);  // sure of 9.5, right in 8
  for (int i = 0; i < 30; ++i) bins.add(0.4, i < 15);
  bins.add(1.0, true);
  EXPECT_NEAR(bins.error(), (1.5 + 3.0 + 0.0) / 41, 1e-12);
  EXPECT_EQ(CalibrationBins().error(), 0);
}

}  // namespace
}  // namespace cgcn
