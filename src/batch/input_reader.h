// Batches whose rows of X, A·X and the labels are brought along, on the thread that prepares them: read from disk, so
// that training takes no memory for the arrays, or copied if they are in memory.
#pragma once

#include <memory>
#include <optional>

#include "batch/batch_source.h"
#include "graph/dataset.h"
#include "graph/feature_reader.h"

namespace cgcn {

class InputReader final : public BatchSource {
 public:
  // x, aggregated: none if the model does not take it.
  InputReader(std::unique_ptr<BatchSource> batches, std::optional<FeatureReader> x,
              std::optional<FeatureReader> aggregated, Labels labels);

  uint32_t batches_per_epoch() const override { return batches_->batches_per_epoch(); }
  BatchLimits limits() const override { return batches_->limits(); }
  uint64_t storage_bytes() const override { return batches_->storage_bytes(); }
  std::unique_ptr<BatchStorage> make_storage() const override;
  void prepare(uint32_t epoch, uint32_t index, BatchStorage& storage) const override;

 private:
  class Storage;
  std::unique_ptr<BatchSource> batches_;
  std::optional<FeatureReader> x_, aggregated_;
  Labels labels_;
};

}  // namespace cgcn
