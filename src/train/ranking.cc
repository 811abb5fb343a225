#include "train/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kRowsRead = size_t{1} << 16;  // at a time

// Walks down the distinct logits: after each, step(logit, how many with the class are at or above it, how many
// without).
template <class Step>
void walk_down(const RankedClass& ranked, Step&& step) {
  size_t with = ranked.with.size(), without = ranked.without.size();
  while (with + without > 0) {
    const float logit =
        std::max(with > 0 ? ranked.with[with - 1] : -INFINITY, without > 0 ? ranked.without[without - 1] : -INFINITY);
    while (with > 0 && ranked.with[with - 1] == logit) --with;
    while (without > 0 && ranked.without[without - 1] == logit) --without;
    step(logit, ranked.with.size() - with, ranked.without.size() - without);
  }
}

// Classes first … first + columns.size(), gathered: those that have it from the front, the others from the back.
struct GatheredClass {
  Buffer<float> logits;
  size_t with = 0, without = 0;

  void add(float logit, bool has) {
    if (!std::isfinite(logit)) logit = std::numeric_limits<float>::lowest();
    logits[has ? with++ : logits.size() - ++without] = logit;
  }
  RankedClass rank() {
    std::sort(logits.begin(), logits.begin() + with);
    std::sort(logits.end() - without, logits.end());
    return {{logits.begin(), with}, {logits.end() - without, without}};
  }
};

std::vector<NodeId> labelled_nodes(const Dataset& data, Role role) {
  std::vector<NodeId> nodes;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.role(v) == role && data.labels.known(v)) nodes.push_back(v);
  return nodes;
}

// One pass over the rows for a range of classes.
void gather(const SlabMatrix& logits, const Labels& labels, std::span<const NodeId> nodes, uint32_t first,
            std::span<GatheredClass> classes) {
  std::vector<float> scratch(logits.spilled() ? std::min(kRowsRead, logits.rows()) * logits.columns() : 0);
  for (size_t i = 0; i < nodes.size();) {
    throw_if_interrupted();
    const size_t begin = nodes[i] / kRowsRead * kRowsRead, end = std::min(logits.rows(), begin + kRowsRead);
    const kernels::ConstMatrix rows = logits.read_rows({begin, end}, scratch.data());
    size_t last = i;
    while (last < nodes.size() && nodes[last] < end) ++last;
    parallel_blocks(classes.size(), 1, [&](size_t c, size_t) {
      for (size_t k = i; k < last; ++k) {
        const NodeId v = nodes[k];
        const float* row = rows.row(v - begin);
        const auto label = static_cast<uint32_t>(first + c);
        if (labels.multi_label())
          classes[c].add(row[label], labels.has(v, label));
        else
          classes[c].add(row[kPositiveClass] - row[1 - kPositiveClass], labels.class_of(v) == kPositiveClass);
      }
    });
    i = last;
  }
}

}  // namespace

double roc_auc(const RankedClass& ranked) {
  CGCN_CHECK(!ranked.with.empty() && !ranked.without.empty());
  double pairs = 0;  // halves, whole numbers far below 2⁵³ for each step
  size_t with = 0, without = 0;
  walk_down(ranked, [&](float, size_t with_now, size_t without_now) {
    pairs += static_cast<double>(without_now - without) * static_cast<double>(with + with_now);
    with = with_now;
    without = without_now;
  });
  return pairs / 2 / static_cast<double>(ranked.with.size()) / static_cast<double>(ranked.without.size());
}

double average_precision(const RankedClass& ranked) {
  CGCN_CHECK(!ranked.with.empty());
  double sum = 0;
  size_t with = 0;
  walk_down(ranked, [&](float, size_t with_now, size_t without_now) {
    sum += static_cast<double>(with_now - with) * static_cast<double>(with_now) /
           static_cast<double>(with_now + without_now);
    with = with_now;
  });
  return sum / static_cast<double>(ranked.with.size());
}

void for_each_ranked_class(const SlabMatrix& logits, const Dataset& data, Role role, uint64_t memory,
                           const std::function<void(uint32_t, const RankedClass&)>& use) {
  CGCN_CHECK(has_ranking(data.labels) && logits.rows() >= data.num_nodes());
  const std::vector<NodeId> nodes = labelled_nodes(data, role);
  if (nodes.empty()) return;
  const uint32_t classes = data.labels.multi_label() ? data.labels.num_classes() : 1;
  const auto fitting = static_cast<size_t>(std::clamp<uint64_t>(memory / (nodes.size() * sizeof(float)), 1, classes));
  for (uint32_t first = 0; first < classes; first += static_cast<uint32_t>(fitting)) {
    std::vector<GatheredClass> gathered(std::min<size_t>(fitting, classes - first));
    for (GatheredClass& one : gathered) one.logits = Buffer<float>(nodes.size());
    gather(logits, data.labels, nodes, first, gathered);
    parallel_blocks(gathered.size(), 1, [&](size_t c, size_t) {
      throw_if_interrupted();
      use(data.labels.multi_label() ? first + static_cast<uint32_t>(c) : kPositiveClass, gathered[c].rank());
    });
  }
}

std::optional<RankScores> rank_role(const SlabMatrix& logits, const Dataset& data, Role role, uint64_t memory) {
  const uint32_t classes = data.labels.num_classes();
  std::vector<double> areas(classes, -1), precisions(classes, -1);
  for_each_ranked_class(logits, data, role, memory, [&](uint32_t c, const RankedClass& ranked) {
    if (ranked.with.empty()) return;
    precisions[c] = average_precision(ranked);
    if (!ranked.without.empty()) areas[c] = roc_auc(ranked);
  });
  const auto mean = [](const std::vector<double>& values) -> std::optional<double> {
    double sum = 0;
    uint32_t count = 0;
    for (const double value : values)
      if (value >= 0) {
        sum += value;
        ++count;
      }
    return count == 0 ? std::nullopt : std::optional(sum / count);
  };
  const std::optional<double> area = mean(areas), precision = mean(precisions);
  if (!area || !precision) return std::nullopt;
  return RankScores{*area, *precision};
}

}  // namespace cgcn
