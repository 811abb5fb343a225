#pragma once

#include "train/training.h"

namespace cgcn {

void print_summary(const TrainingSummary& summary, const Dataset& data, bool has_report);

}  // namespace cgcn
