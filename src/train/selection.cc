#include "train/selection.h"

#include <fmt/format.h>

#include <cmath>

namespace cgcn {
namespace {

struct ScoreName {
  const char *name, *key;
  bool percent, negated;
};

ScoreName name_of(SelectBy by) {
  switch (by) {
    case SelectBy::kLoss:
      return {"loss", "loss", false, true};
    case SelectBy::kR2:
      return {"R²", "r2", false, false};
    case SelectBy::kMae:
      return {"MAE", "mae", false, true};
    case SelectBy::kRmse:
      return {"RMSE", "rmse", false, true};
    case SelectBy::kMacroF1:
      return {"macro F1", "macro_f1", true, false};
    case SelectBy::kAccuracy:
      return {"accuracy", "accuracy", true, false};
    case SelectBy::kRocAuc:
      return {"ROC-AUC", "roc_auc", true, false};
    case SelectBy::kAveragePrecision:
      return {"average precision", "average_precision", true, false};
    default:
      return {"F1", "micro_f1", true, false};
  }
}

std::string number(double value, const ScoreName& name) {
  return name.percent ? fmt::format("{:.2f}", 100 * value) : fmt::format("{:.4f}", name.negated ? -value : value);
}

}  // namespace

SelectBy selection_of(SelectBy asked, const Labels& labels) {
  return asked == SelectBy::kAuto ? summary_score(labels) : asked;
}

SelectBy summary_score(const Labels& labels) { return labels.regression() ? SelectBy::kR2 : SelectBy::kMicroF1; }

bool is_of_regression(SelectBy by) { return by == SelectBy::kR2 || by == SelectBy::kMae || by == SelectBy::kRmse; }

bool selects_by_rank(SelectBy by) { return by == SelectBy::kRocAuc || by == SelectBy::kAveragePrecision; }

double selection_score(const Scores& scores, SelectBy by) {
  switch (by) {
    case SelectBy::kMacroF1:
      return scores.macro_f1;
    case SelectBy::kAccuracy:
      return scores.accuracy;
    case SelectBy::kLoss:
      return -scores.loss;
    case SelectBy::kR2:
      return scores.regression ? scores.regression->r2 : NAN;
    case SelectBy::kMae:
      return scores.regression ? -scores.regression->mae : NAN;
    case SelectBy::kRmse:
      return scores.regression ? -scores.regression->rmse : NAN;
    case SelectBy::kRocAuc:
      return scores.roc_auc.value_or(NAN);
    case SelectBy::kAveragePrecision:
      return scores.average_precision.value_or(NAN);
    default:
      return scores.micro_f1;
  }
}

std::string selection_name(SelectBy by) { return name_of(by).name; }
std::string selection_key(SelectBy by) { return name_of(by).key; }

double shown_score(double score, SelectBy by) { return name_of(by).negated ? -score : score; }

std::string show_score(double score, SelectBy by) {
  const ScoreName name = name_of(by);
  return number(score, name) + (name.percent ? " %" : "");
}

std::string show_selection(double score, SelectBy by) {
  return fmt::format("{} {}", name_of(by).name, show_score(score, by));
}

std::string show_change(double before, double after, SelectBy by) {
  const ScoreName name = name_of(by);
  return fmt::format("{} {} to {}", name.name, show_score(before, by), show_score(after, by));
}

std::string show_spread(double mean, double deviation, SelectBy by) {
  const ScoreName name = name_of(by);
  ScoreName plain = name;
  plain.negated = false;
  return fmt::format("{} {} ± {}{}", name.name, number(mean, name), number(deviation, plain), name.percent ? " %" : "");
}

std::string show_interval(double low, double high, SelectBy by) {
  const ScoreName name = name_of(by);
  return fmt::format("{} to {}{}", number(name.negated ? high : low, name), number(name.negated ? low : high, name),
                     name.percent ? " %" : "");
}

}  // namespace cgcn
