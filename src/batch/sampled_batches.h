// Batches of target nodes with the part of their neighbourhoods that a sampler keeps.
//
// An epoch takes the training nodes in a new order, some at a time. From the last layer down, a sampler gives the edges
// of a layer's nodes; the nodes at their other ends join those nodes to make the layer below. A node's own embedding
// comes from there too, so that the nodes of a layer always begin the layer below, whether or not they were sampled.
#pragma once

#include <memory>

#include "batch/batch_source.h"
#include "batch/layer_sampler.h"
#include "common/buffer.h"
#include "graph/dataset.h"

namespace cgcn {

struct SampledBatchOptions {
  uint32_t layers = 2;            // L
  uint32_t targets = 512;         // in a batch
  bool aggregates_input = false;  // layer 1 aggregates X by the edges of the batch; else it takes A·X
  uint64_t seed = 1;
};

class SampledBatches final : public BatchSource {
 public:
  SampledBatches(const Dataset& data, std::unique_ptr<LayerSampler> sampler, const SampledBatchOptions& options);

  uint32_t batches_per_epoch() const override;
  BatchLimits limits() const override { return {}; }
  std::unique_ptr<BatchStorage> make_storage() const override;
  void prepare(uint32_t epoch, uint32_t index, BatchStorage& storage) const override;
  bool has_remainders() const override { return sampler_->has_remainders(); }

 private:
  class Storage;
  void choose_targets(uint32_t epoch, uint32_t index, Storage& storage) const;
  void expand(uint32_t layer, Storage& storage) const;

  NodeId num_nodes_;
  std::unique_ptr<LayerSampler> sampler_;
  SampledBatchOptions options_;
  std::vector<NodeId> trained_on_;
};

}  // namespace cgcn
