// A data set made of arrays that a caller has, checked once, and used in place if their layout allows it.
#pragma once

#include "clustergcn/clustergcn.h"
#include "graph/dataset.h"

namespace cgcn {

// Error that names the array and the place in it where something is wrong.
Dataset make_dataset(const clustergcn::GraphArrays& arrays);

}  // namespace cgcn
