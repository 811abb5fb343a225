// The score that validation chooses a model by (--select-by).
#pragma once

#include <string>

#include "graph/dataset.h"
#include "train/metrics.h"
#include "train/train_options.h"

namespace cgcn {

// What kAuto stands for.
SelectBy selection_of(SelectBy asked, const Labels& labels);

// The score by which the results of the task are told.
SelectBy summary_score(const Labels& labels);

// Whether it needs the ranks of nodes (ranking.h).
bool selects_by_rank(SelectBy by);

// Whether it is one of labels that are numbers.
bool is_of_regression(SelectBy by);

// Higher is better; a loss or an error counts as its negative. NaN if the role has no such score.
double selection_score(const Scores& scores, SelectBy by);

// "F1", "loss".
std::string selection_name(SelectBy by);
// As scores have it in JSON: "micro_f1", "loss".
std::string selection_key(SelectBy by);
// As it is told: a loss or an error is positive again.
double shown_score(double score, SelectBy by);
std::string show_score(double score, SelectBy by);  // "91.20 %", "0.1234"
// "F1 91.20 %", "loss 0.1234".
std::string show_selection(double score, SelectBy by);
std::string show_change(double before, double after, SelectBy by);    // "F1 91.20 % to 91.60 %"
std::string show_spread(double mean, double deviation, SelectBy by);  // "F1 91.20 ± 0.31 %"
std::string show_interval(double low, double high, SelectBy by);      // "90.81 to 91.59 %"

}  // namespace cgcn
