// Edges sampled node by node: every target keeps some of its own.
//
// A row of N(A) with n edges apart from its diagonal keeps s of them, drawn alike, each with the value N_uv·n/s, so
// that the mean over draws is the row itself. The diagonal, if the normalisation has one, is always kept as it is.
//
//   all edges             vanilla mini-batches: exact neighbourhoods
//   a fan-out             GraphSAGE: s of n; if n < s, s draws with replacement, as its authors do
//   with control variates VR-GCN: s = min(n, D) without replacement, and the rest of the row from a history
//     CV    N̂·H + (N - N̂)·H̄
//     CVD   √(s/n)·N̂·h + (1 - √(s/n))·N̂·μ + (N - N̂)·μ̄, so that the noise of dropout has the variance that all n
//           neighbours would give it
#pragma once

#include "batch/layer_sampler.h"
#include "graph/normalised_rows.h"

namespace cgcn {

enum class ControlVariate { kNone, kCv, kCvd };

struct NeighbourSamplerOptions {
  std::vector<uint32_t> fanouts;  // of the last layer, of the one below it …; the last of these continues. 0: all edges
  bool replacement = false;       // rows with fewer edges than their fan-out
  ControlVariate control = ControlVariate::kNone;
  uint32_t layers = 1;  // L: which of the fan-outs is which layer's
};

class NeighbourSampler final : public LayerSampler {
 public:
  NeighbourSampler(const CsrGraph& graph, const Normalisation& normalisation, NeighbourSamplerOptions options);

  void sample(const LayerDraw& draw, std::span<const NodeId> targets, SampledRows& rows,
              SamplerScratch& scratch) const override;
  bool has_remainders() const override { return options_.control != ControlVariate::kNone; }

 private:
  // The edges of a row among which it draws: all but a loop that counts in the diagonal.
  struct Pool {
    EdgeOffset begin = 0;
    uint32_t size = 0, loop = UINT32_MAX;
    EdgeOffset at(uint32_t place) const { return begin + place + (place >= loop ? 1 : 0); }
  };
  uint32_t fanout(uint32_t layer) const;
  Pool pool_of(NodeId v) const;
  // How many of them are drawn; 0: all are kept, and nothing is drawn.
  uint32_t draws(const Pool& pool, uint32_t fanout) const;
  void add_diagonal(NodeId v, const Pool& pool, SampledRows& rows) const;
  void add_drawn(NodeId v, const Pool& pool, std::span<const uint32_t> words, SampledRows& rows,
                 SamplerScratch& scratch) const;
  void add_history(NodeId v, const Pool& pool, float factor, SampledRows& rows, const SamplerScratch& scratch) const;
  void add_link(NodeId v, EdgeOffset e, float factor, float noise_share, SampledRows& rows) const;

  NormalisedRows rows_;
  NeighbourSamplerOptions options_;
  bool has_loops_;  // that belong to the diagonal
};

}  // namespace cgcn
