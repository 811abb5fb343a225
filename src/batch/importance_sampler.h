// Edges sampled layer by layer (FastGCN): t nodes for all targets of a layer, and the edges to them.
//
// t draws with replacement from q(u) ∝ ‖N(:,u)‖², the columns of N(A); a node drawn c times counts with the weight
// c / (t·q(u)), so that the mean over draws is N(A) itself.
#pragma once

#include "batch/layer_sampler.h"
#include "graph/normalised_rows.h"

namespace cgcn {

enum class Importance { kSquared, kNorm };  // ‖N(:,u)‖² as in its paper, ‖N(:,u)‖ as in its released code

class ImportanceSampler final : public LayerSampler {
 public:
  // nodes_per_layer: t; 0: all nodes, once each, and nothing is drawn.
  ImportanceSampler(const CsrGraph& graph, const Normalisation& normalisation, uint32_t nodes_per_layer,
                    Importance importance);

  void sample(const LayerDraw& draw, std::span<const NodeId> targets, SampledRows& rows,
              SamplerScratch& scratch) const override;
  double probability(NodeId v) const;  // q(v)

 private:
  void draw_weights(const LayerDraw& draw, SamplerScratch& scratch) const;

  NormalisedRows rows_;
  uint32_t nodes_per_layer_;
  std::vector<double> cumulative_;  // cumulative_[v + 1] - cumulative_[v] is q(v)
};

}  // namespace cgcn
