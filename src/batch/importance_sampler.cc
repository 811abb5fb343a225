#include "batch/importance_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/random_words.h"

namespace cgcn {

ImportanceSampler::ImportanceSampler(const CsrGraph& graph, const Normalisation& normalisation,
                                     uint32_t nodes_per_layer, Importance importance)
    : rows_(graph, normalisation), nodes_per_layer_(nodes_per_layer), cumulative_(size_t{graph.num_nodes()} + 1) {
  for (NodeId v = 0; v < graph.num_nodes(); ++v)
    rows_.for_each(v, [&](NodeId u, float value) { cumulative_[size_t{u} + 1] += double{value} * value; });
  if (importance == Importance::kNorm)
    for (double& square : cumulative_) square = std::sqrt(square);
  std::partial_sum(cumulative_.begin(), cumulative_.end(), cumulative_.begin());
  const double total = cumulative_.back();
  if (total > 0)
    for (double& sum : cumulative_) sum /= total;
}

double ImportanceSampler::probability(NodeId v) const { return cumulative_[size_t{v} + 1] - cumulative_[v]; }

// c / (t·q) of the nodes drawn, into scratch.weights, and the nodes, each once, into scratch.places.
void ImportanceSampler::draw_weights(const LayerDraw& draw, SamplerScratch& scratch) const {
  scratch.weights.resize(cumulative_.size() - 1, 0);
  scratch.places.clear();
  scratch.words.resize(size_t{2} * nodes_per_layer_);
  kernels::draw_words({draw.seed, Purpose::kSample, draw.epoch, draw.index, draw.layer}, scratch.words);
  for (size_t i = 0; i < nodes_per_layer_; ++i) {
    const uint64_t word = scratch.words[2 * i] | (uint64_t{scratch.words[2 * i + 1]} << 32);
    const double at = static_cast<double>(word >> 11) * 0x1p-53;
    const auto above = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    if (above == cumulative_.end()) continue;  // a graph without any entry
    const auto u = static_cast<NodeId>(above - cumulative_.begin() - 1);
    if (scratch.weights[u] == 0) scratch.places.push_back(u);
    scratch.weights[u] += static_cast<float>(1 / (nodes_per_layer_ * probability(u)));
  }
}

void ImportanceSampler::sample(const LayerDraw& draw, std::span<const NodeId> targets, SampledRows& rows,
                               SamplerScratch& scratch) const {
  rows.clear();
  const bool all = nodes_per_layer_ == 0;
  if (!all) draw_weights(draw, scratch);
  for (const NodeId v : targets) {
    rows_.for_each(v, [&](NodeId u, float value) {
      const float weight = all ? 1 : scratch.weights[u];
      if (weight != 0) rows.add(u, weight * value);
    });
    rows.end_row();
  }
  if (all) return;
  for (const uint32_t u : scratch.places) scratch.weights[u] = 0;
}

}  // namespace cgcn
