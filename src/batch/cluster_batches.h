// The batches of Algorithm 1: q clusters at a time, with the edges between them restored.
//
// An epoch permutes the clusters and cuts groups of q, the last one smaller if q does not divide p; or every batch
// draws its own q. The adjacency is N(A_BB): the edges among the batch's nodes, normalised on the degrees within the
// batch. Nodes of a batch lie in the order of the layout, so that a batch is at most q contiguous ranges of every
// array.
#pragma once

#include <vector>

#include "batch/batch_source.h"
#include "common/buffer.h"
#include "common/input_file.h"
#include "common/placed_memory.h"
#include "graph/normalisation.h"
#include "partition/partition.h"

namespace cgcn {

enum class ClusterDraw { kPermutation, kIndependent };

struct ClusterBatchOptions {
  uint32_t clusters_per_batch = 1;  // q; at most p are used
  ClusterDraw draw = ClusterDraw::kPermutation;
  Normalisation normalisation;
  bool aggregates_input = false;  // layer 1 aggregates X by the edges of the batch; else it takes A·X
  uint64_t seed = 1;
};

// What a batch's storage is sized by.
struct ClusterStorageSizes {
  ClusterStorageSizes(uint32_t p, uint32_t q, const BatchLimits& limits, bool directed,
                      const Normalisation& normalisation);

  uint32_t clusters, chosen;  // p and q
  BatchLimits batch;
  // The adjacency's transpose: the adjacency itself, the same places with values of its own, or a matrix of its own.
  enum class Transpose { kShared, kOwnValues, kOwn } transpose;
  bool reads_targets = false, reads_weights = false;  // from disk
};

class ClusterBatches final : public BatchSource {
 public:
  ClusterBatches(ClusterLayout layout, const ClusterBatchOptions& options);

  uint32_t batches_per_epoch() const override;
  BatchLimits limits() const override { return limits_; }
  std::unique_ptr<BatchStorage> make_storage() const override;
  void prepare(uint32_t epoch, uint32_t index, BatchStorage& storage) const override;
  uint64_t storage_bytes() const override;
  static uint64_t storage_bytes(const ClusterStorageSizes& sizes);
  // What the source itself keeps of so many nodes.
  static uint64_t table_bytes(uint64_t nodes) { return nodes * (sizeof cluster_of_[0] + sizeof in_loss_[0]); }

  uint64_t most_entries(std::span<const uint64_t> offsets) const override;
  uint64_t link_buffer_bytes() const override;
  void read_links_from_disk() override;

 private:
  class Storage;
  ClusterStorageSizes sizes(bool reads_links) const;
  void choose_clusters(uint32_t epoch, uint32_t index, Storage& storage) const;
  void list_nodes(Storage& storage) const;
  void extract_adjacency(Storage& storage) const;
  void read_links(Storage& storage) const;
  void normalise_adjacency(Storage& storage) const;
  void transpose_adjacency(Storage& storage) const;

  ClusterLayout layout_;
  ClusterBatchOptions options_;
  uint32_t q_;
  BatchLimits limits_;
  std::unique_ptr<InputFile> targets_file_, weights_file_;  // if edges are read from disk
  Buffer<uint32_t> cluster_of_;                             // row → cluster
  Buffer<uint8_t> in_loss_;  // row → whether it is trained on: a training node whose label is known
};

}  // namespace cgcn
