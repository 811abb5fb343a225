// The convolutions of layers 2 … L on a batch: forward, and backward down to the gradient at the layer below's z.
//
// Aggregate first:  C = D([A·H, H]),  z = C·W + b,       H' = act(z)
//   dW = Cᵀ·dz,  dC = D(dz·Wᵀ),  dH = Aᵀ·dC_left + dC_right [+ dH' where residual],  dz_below = act'(dH)
// Project first (where nothing is dropped):  P = H·W_left,  z = A·P + H·W_right + b
//   dP = Aᵀ·dz,  dW = [Hᵀ·dP; Hᵀ·dz],  dH = dP·W_leftᵀ + dz·W_rightᵀ [+ dH'],  dz_below = act'(dH)
#pragma once

#include "batch/batch.h"
#include "nn/layer.h"

namespace cgcn {

struct Step {
  const Batch& batch;
  uint64_t seed = 0;
  float dropout = 0;  // 0 in inference

  kernels::DropoutKey dropout_key(uint32_t stream) const { return {seed, batch.epoch, batch.index, stream}; }
  kernels::DropoutMask mask(uint8_t* bits, size_t columns) const;
};

// Streams of the dropout masks: the aggregated part and the own part of a layer's input.
inline uint32_t aggregated_stream(const Layer& layer) { return 2 * (layer.number - 1); }
inline uint32_t own_stream(const Layer& layer) { return 2 * (layer.number - 1) + 1; }

// Whether the product shall come before the aggregation: the same result for less work.
bool projects_first(const Layer& layer, const Step& step);

// out = initial + a·source, on all threads. No initial: zero.
void aggregate_all(const SparseView& a, kernels::ConstMatrix source, kernels::ConstMatrix initial, kernels::Matrix out);

// previous: H_{l-1}, which lies in memory.input where projects_first(). term: a constant that is added to A·H; empty:
// none. next: H_l; unused by the last layer.
void forward_convolution(const Layer& layer, const Step& step, LayerMemory& memory, StepMemory& shared,
                         kernels::ConstMatrix previous, kernels::ConstMatrix term, kernels::Matrix next);

// From dz of this layer (in memory.output) to this layer's weight gradient and dz of the layer below. source_mask: what
// was dropped of H_{l-1} before this layer; empty: nothing.
void backward_convolution(const Layer& layer, const Layer& below, const Step& step, LayerMemory& memory,
                          LayerMemory& below_memory, StepMemory& shared, const kernels::DropoutMask& source_mask);

// The gradient of a layer's bias: the column sums of dz.
void backward_bias(const Layer& layer, kernels::ConstMatrix z_gradient);

}  // namespace cgcn
