// A short training without a run folder: what some settings are worth on a graph. What the store keeps for a training
// (clusters, A·X) it keeps for this one, too.
#pragma once

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "graph/store.h"
#include "train/run_options.h"

namespace cgcn {

// The score of the validation nodes that --select-by names (higher is better) after all epochs of the options, with the
// smoothing that they ask for. after_epoch: called after each. Throws Interrupted if the user stops it, and NotFinite.
double score_settings(const Store& store, const RunOptions& options, const std::function<void()>& after_epoch);

// How far apart two scores of the graph's validation nodes must be to say something: the deviation of a share of so
// many nodes.
double score_margin(double score, const Dataset& data, SelectBy by);

// What came of trying several networks. One that learns fast leads a short trial and may lose a long one: the best is
// compared with the first once more, in trials of twice the epochs, and must still be ahead.
struct Trials {
  struct Trial {
    std::string network;
    double score;                  // not finite: training failed
    std::optional<double> longer;  // of the second trial, if there was one
  };
  std::vector<Trial> list;  // empty: nothing was tried
  SelectBy by = SelectBy::kMicroF1;
  double seconds = 0;
  size_t taken = 0;

  // The first, unless another one is better by more than chance.
  size_t best_of_short(const Dataset& data) const;
  // Whether such a one needs a second trial: not if the first failed.
  bool are_to_be_compared(size_t other) const { return other > 0 && std::isfinite(list[0].score); }
  std::string text() const;  // "6 networks tried … concat 95.10 %, deep concat 94.80 %: concat stays"
  nlohmann::json describe() const;
};

}  // namespace cgcn
