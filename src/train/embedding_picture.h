// A 2-D picture of the last hidden layer: the first two principal components of a sample of nodes (embeddings.json).
//
// The sample and the components depend on the graph and the weights alone: neither threads nor memory change a bit.
#pragma once

#include <nlohmann/json.hpp>

#include "graph/dataset.h"
#include "train/inference.h"

namespace cgcn {

inline constexpr size_t kMostSampledNodes = 2000;
inline constexpr uint64_t kMostSampledBytes = uint64_t{4} << 20;
inline constexpr size_t kMostPictureClasses = 12;  // with a colour of their own

// Evenly spaced test nodes; validation nodes if there are none, else training nodes. columns: of a row to come.
RowSample sample_tested_nodes(const Dataset& data, size_t columns);
uint64_t sampled_bytes(const Dataset& data, size_t columns);  // that its rows take

// Two directions of the largest variance (unit vectors, columns each), their share of the variance, and the rows along
// them (two figures per row).
struct Components {
  std::vector<double> directions, projected;
  double share[2] = {0, 0};
};
Components principal_components(const RowSample& sample);

// x and y of each node, and its classes as numbers in class_names: the classes with the most sampled nodes. Of
// regression its value instead, null if that is unknown.
nlohmann::json describe_embeddings(const RowSample& sample, const Dataset& data);

}  // namespace cgcn
