#include "train/thresholds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "common/interrupt.h"
#include "common/threads.h"
#include "train/graph_share.h"

namespace cgcn {
namespace {

constexpr size_t kGrid = 65;                      // thresholds that are tried, from -6 to 6
constexpr float kFirst = -6, kStep = 0.1875f;     // which floats hold exactly
constexpr size_t kMiddle = (kGrid - 1) / 2;       // 0
constexpr double kSharedPositives = 10;           // of the average class, that each one counts
constexpr size_t kRowsCounted = size_t{1} << 14;  // at a time
constexpr int kHalves = 2;

constexpr float at(size_t place) { return kFirst + kStep * static_cast<float>(place); }
static_assert(at(kMiddle) == 0);

// How many thresholds are below a logit; of NaN none.
size_t places_below(float logit) {
  if (!(logit > kFirst)) return 0;
  size_t place = static_cast<size_t>(std::min((logit - kFirst) / kStep, static_cast<float>(kGrid)));
  while (place < kGrid && logit > at(place)) ++place;
  while (place > 0 && !(logit > at(place - 1))) --place;
  return place;
}

// Of the nodes of a class, in a half: how many are predicted at each threshold, with the class and without it.
struct Counts {
  std::array<double, kGrid> with{}, without{};
  double positives = 0;

  void add(const Counts& other, double weight = 1) {
    for (size_t g = 0; g < kGrid; ++g) {
      with[g] += weight * other.with[g];
      without[g] += weight * other.without[g];
    }
    positives += weight * other.positives;
  }
  double predicted(size_t g) const { return with[g] + without[g]; }
};

// 2·TP / (P + N) as it is added up over classes and nodes.
struct F1 {
  double hits = 0, total = 0;
  void add(const Counts& counts, size_t g) {
    hits += 2 * counts.with[g];
    total += counts.positives + counts.predicted(g);
  }
  double value() const { return total > 0 ? hits / total : 0; }
};

// The place with the highest score, of equals the one nearest to 0.
template <class Score>
size_t best_place(Score&& score) {
  size_t best = kMiddle;
  double highest = score(kMiddle);
  for (size_t distance = 1; distance <= kMiddle; ++distance)
    for (const size_t g : {kMiddle - distance, kMiddle + distance})
      if (const double reached = score(g); reached > highest) {
        highest = reached;
        best = g;
      }
  return best;
}

enum class Rule { kZero, kCommon, kEach };
using Places = std::vector<size_t>;  // class → threshold

class ThresholdChoice {
 public:
  // classes: that are counted apart; 1 of many: all together.
  ThresholdChoice(const Labels& labels, bool macro)
      : labels_(labels),
        apart_(labels.num_classes() <= kMostThresholds),
        macro_(macro && apart_),
        bins_(apart_ ? labels.num_classes() : 1) {}

  // Rows of logits of `nodes`, which are in `half` of the validation nodes each.
  struct Node {
    NodeId v;
    const float* row;
    int half;
  };
  void count(std::span<const Node> nodes) {
    const size_t classes = labels_.num_classes();
    const auto count_class = [&](size_t c) {
      for (const auto& [v, row, half] : nodes)
        ++bins_[apart_ ? c : 0][half][labels_.has(v, static_cast<uint32_t>(c))][places_below(row[c])];
    };
    if (apart_)
      parallel_blocks(classes, 1, [&](size_t c, size_t) { count_class(c); });
    else
      for (size_t c = 0; c < classes; ++c) count_class(c);
  }

  // Empty: 0 for all.
  std::vector<float> choose() const {
    const std::vector<Counts> halves[kHalves] = {counts_of({0}), counts_of({1})}, all = counts_of({0, 1});
    Rule best = Rule::kZero;
    double highest = held_out_score(best, halves);
    for (const Rule rule : {Rule::kCommon, Rule::kEach}) {
      if (rule == Rule::kEach && !apart_) break;
      if (const double reached = held_out_score(rule, halves); reached > highest) {
        highest = reached;
        best = rule;
      }
    }
    if (best == Rule::kZero) return {};
    std::vector<float> thresholds;
    for (const size_t place : fit(best, all)) thresholds.push_back(at(place));
    thresholds.resize(labels_.num_classes(), thresholds[0]);
    return thresholds;
  }

 private:
  std::vector<Counts> counts_of(std::initializer_list<int> halves) const {
    std::vector<Counts> counts(bins_.size());
    for (size_t c = 0; c < bins_.size(); ++c)
      for (const int half : halves) {
        const auto& [without, with] = bins_[c][static_cast<size_t>(half)];
        uint64_t above_with = 0, above_without = 0;
        for (size_t g = kGrid; g-- > 0;) {
          counts[c].with[g] += static_cast<double>(above_with += with[g + 1]);
          counts[c].without[g] += static_cast<double>(above_without += without[g + 1]);
        }
        counts[c].positives += static_cast<double>(above_with + with[0]);
      }
    return counts;
  }

  double held_out_score(Rule rule, const std::vector<Counts> (&halves)[kHalves]) const {
    const Places fitted[kHalves] = {fit(rule, halves[0]), fit(rule, halves[1])};
    F1 sum;
    double each = 0;
    size_t scored = 0;
    for (size_t c = 0; c < bins_.size(); ++c) {
      F1 own;
      for (const int half : {0, 1}) own.add(halves[half][c], fitted[1 - half][c]);
      sum.hits += own.hits;
      sum.total += own.total;
      each += own.value();
      scored += own.total > 0;
    }
    return macro_ ? each / static_cast<double>(std::max<size_t>(1, scored)) : sum.value();
  }

  Places fit(Rule rule, const std::vector<Counts>& counts) const {
    if (rule == Rule::kZero) return Places(counts.size(), kMiddle);
    const size_t common = fit_common(counts);
    if (rule == Rule::kCommon) return Places(counts.size(), common);
    Counts shared;
    for (const Counts& one : counts) shared.add(one);
    if (shared.positives == 0) return Places(counts.size(), kMiddle);
    std::vector<Counts> mixed = counts;
    for (Counts& one : mixed) one.add(shared, kSharedPositives / shared.positives);
    return macro_ ? fit_macro(mixed) : fit_micro(mixed, common);
  }

  size_t fit_common(const std::vector<Counts>& counts) const {
    return best_place([&](size_t g) {
      F1 sum;
      double each = 0;
      for (const Counts& one : counts) {
        sum.add(one, g);
        F1 own;
        own.add(one, g);
        each += own.value();
      }
      return macro_ ? each : sum.value();
    });
  }

  static Places fit_macro(const std::vector<Counts>& counts) {
    Places places;
    for (const Counts& one : counts)
      places.push_back(best_place([&](size_t g) {
        F1 own;
        own.add(one, g);
        return own.value();
      }));
    return places;
  }

  static Places fit_micro(const std::vector<Counts>& counts, size_t common) {
    constexpr int kMostRounds = 20;
    const auto f1_of = [&](const Places& places) {
      F1 sum;
      for (size_t c = 0; c < counts.size(); ++c) sum.add(counts[c], places[c]);
      return sum.value();
    };
    Places places(counts.size(), common);
    double f1 = f1_of(places);
    for (int round = 0; round < kMostRounds; ++round) {
      Places better;
      for (const Counts& one : counts)
        better.push_back(best_place([&](size_t g) { return 2 * one.with[g] - f1 * one.predicted(g); }));
      const double reached = f1_of(better);
      if (!(reached > f1)) break;
      f1 = reached;
      places = std::move(better);
    }
    return places;
  }

  // half → without or with the class → how many nodes have so many thresholds below their logit.
  using Bins = std::array<std::array<std::array<uint64_t, kGrid + 1>, 2>, kHalves>;

  const Labels& labels_;
  bool apart_, macro_;
  std::vector<Bins> bins_;
};

}  // namespace

std::vector<float> choose_thresholds(const SlabMatrix& logits, const Dataset& data, SelectBy by) {
  ThresholdChoice choice(data.labels, by == SelectBy::kMacroF1);
  uint64_t seen = 0;
  GraphShare(data.graph).collect(logits, kRowsCounted, [&](kernels::ConstMatrix rows, NodeId first) {
    throw_if_interrupted();
    std::vector<ThresholdChoice::Node> nodes;
    for (size_t r = 0; r < rows.rows; ++r)
      if (const NodeId v = first + static_cast<NodeId>(r); data.role(v) == Role::kValidation && data.labels.known(v))
        nodes.push_back({v, rows.row(r), static_cast<int>(seen++ % kHalves)});
    choice.count(nodes);
  });
  return choice.choose();
}

}  // namespace cgcn
