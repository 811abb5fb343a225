// Where batches come from: clusters, or a sampler of one of the compared methods.
#pragma once

#include <memory>
#include <span>

#include "graph/batch.h"

namespace cgcn {

// The storage behind a Batch, reused from step to step; every source fills its own kind.
class BatchStorage {
 public:
  virtual ~BatchStorage() = default;
  Batch batch;
};

// Makes batches. A batch is a pure function of (epoch, index), so that any thread may prepare any of them.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual uint32_t batches_per_epoch() const = 0;
  virtual BatchLimits limits() const = 0;
  virtual std::unique_ptr<BatchStorage> make_storage() const = 0;
  virtual void prepare(uint32_t epoch, uint32_t index, BatchStorage& storage) const = 0;

  // For a plan of memory. What one storage takes at most (0: it is not known), and the entries that a batch has at most
  // in rows which such offsets cut.
  virtual uint64_t storage_bytes() const { return 0; }
  virtual uint64_t most_entries(std::span<const uint64_t>) const { return 0; }
  // What a storage takes in addition if the edges of each batch are read from disk; 0: they cannot be.
  virtual uint64_t link_buffer_bytes() const { return 0; }
  virtual void read_links_from_disk() {}
  virtual bool has_remainders() const { return false; }  // whether training keeps a history of embeddings
};

}  // namespace cgcn
