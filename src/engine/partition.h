// A store's nodes in clusters, with A·X and how good the clusters are.
#pragma once

#include "common/memory_budget.h"
#include "partition/quality.h"

namespace cgcn {

struct PartitionRequest {
  enum class Product { kMean, kSum, kNone };  // which A·X to compute now

  PartitionOptions partition;
  MemoryOptions memory;
  uint32_t clusters_per_batch = 1;  // that the figures are given for
  Product product = Product::kMean;

  void list_options(OptionList& list);
};

struct PartitionReport {
  PartitionResult result;
  PartitionQuality quality;
  std::vector<PartitionStages::Figures> stages;
  double preprocessing_seconds = 0;  // of all stages but the search for clusters and the figures
  uint64_t store_bytes = 0;          // on disk

  std::string name() const { return result.layout.path.filename().string(); }
  const nlohmann::json& record() const { return result.layout.files->extra().at("partition"); }
  uint64_t bytes() const { return result.layout.files->bytes_on_disk(); }
  nlohmann::json to_json() const;
};

// Waits if another program is partitioning the same store.
PartitionReport partition_store(const fs::path& store, const PartitionRequest& request);
PartitionReport partition_store(const Store& store, PartitionRequest request);

}  // namespace cgcn
