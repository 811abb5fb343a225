// --class-weights: how much a node's loss counts by its class.
//
//   one class per node:  a node counts w_c of its class; balanced: w_c = n / (C·n_c), as scikit-learn weighs
//   multi-label:         a bit that is set counts w_c, one that is not counts 1; balanced: w_c = (n - n_c) / n_c
//
// n counts the training nodes with a label. The loss is still divided by the number of nodes, not by their weights.
#pragma once

#include <string>
#include <vector>

#include "graph/dataset.h"

namespace cgcn {

// option: "none", which gives an empty vector, "balanced", or a CSV file of class,weight; classes that it does not name
// count 1. Error that names the file's line.
std::vector<float> read_class_weights(const std::string& option, const Dataset& data);

// Names a file.
bool is_weights_file(const std::string& option);

}  // namespace cgcn
