// Scores in the form that the public interface has.
#pragma once

#include "clustergcn/clustergcn.h"
#include "train/evaluation.h"

namespace clustergcn {

Scores to_scores(const cgcn::Scores& scores);
Evaluation to_evaluation(const cgcn::Evaluation& evaluation);

}  // namespace clustergcn
