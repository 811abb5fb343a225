// Which edges of a layer's rows per batch keeps, and with which weights: what the sampling methods differ in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/csr_graph.h"

namespace cgcn {

// Rows of sampled edges, columns by the layout's numbers.
struct SampledRows {
  std::vector<uint64_t> offsets;
  std::vector<NodeId> columns;
  std::vector<float> values;
  // If there are remainders (batch.h): of_mean next to the values, and of_history.
  std::vector<float> mean_values;
  std::vector<uint64_t> history_offsets;
  std::vector<NodeId> history_columns;
  std::vector<float> history_values;

  void clear();
  void add(NodeId column, float value) {
    columns.push_back(column);
    values.push_back(value);
  }
  void end_row() { offsets.push_back(columns.size()); }
};

// Which draw this is: every random number of a batch is a function of these and of its place in the layer.
struct LayerDraw {
  uint64_t seed = 0;
  uint32_t epoch = 0, index = 0, layer = 0;
};

// Memory that is used again from draw to draw.
struct SamplerScratch {
  std::vector<uint32_t> words;   // random
  std::vector<uint32_t> counts;  // how often each place was drawn; zeros between rows
  std::vector<uint32_t> places;
  std::vector<float> weights;  // per node of the layout; zeros between layers
};

class LayerSampler {
 public:
  virtual ~LayerSampler() = default;
  // Replaces what `rows` held by the targets' rows.
  virtual void sample(const LayerDraw& draw, std::span<const NodeId> targets, SampledRows& rows,
                      SamplerScratch& scratch) const = 0;
  virtual bool has_remainders() const { return false; }
};

inline void SampledRows::clear() {
  for (auto* offset_list : {&offsets, &history_offsets}) offset_list->assign(1, 0);
  columns.clear();
  values.clear();
  mean_values.clear();
  history_columns.clear();
  history_values.clear();
}

}  // namespace cgcn
