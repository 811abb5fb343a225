// The methods of the paper's comparison, as batches of the same form: one place where a name becomes a batch source.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch/cluster_batches.h"
#include "batch/importance_sampler.h"
#include "batch/neighbour_sampler.h"
#include "common/options.h"

namespace cgcn {

enum class FirstLayer { kExact, kBatch };  // from A·X of all edges, or aggregated by the edges of the batch
enum class Method { kCluster, kFullBatch, kSgd, kGraphSage, kFastGcn, kVrGcn };

struct MethodOptions {
  Method method = Method::kCluster;
  uint32_t targets = 512;       // training nodes in a batch, if it is made of nodes
  std::string fanout = "auto";  // numbers, from the last layer down; auto: see fanouts()
  uint32_t layer_nodes = 400;   // FastGCN's t
  Importance importance = Importance::kSquared;
  ControlVariate control = ControlVariate::kCvd;  // VR-GCN's

  FirstLayer first_layer = FirstLayer::kExact;

  void list_options(OptionList& list);

  std::vector<uint32_t> fanouts() const;  // 10, 25 for GraphSAGE and 2 for VR-GCN if nothing is said
  bool uses_clusters() const { return method == Method::kCluster; }
  // The partition to train on: what was asked for, or the same nodes as one cluster if there is no use for clusters.
  PartitionOptions partition(const PartitionOptions& asked) const;
};

// `clusters` holds what all methods share: the normalisation, the seed, and whether layer 1 aggregates its input (it
// always does with FirstLayer::kBatch). layers: L of the network.
std::unique_ptr<BatchSource> make_batch_source(const MethodOptions& options, const ClusterLayout& layout,
                                               ClusterBatchOptions clusters, uint32_t layers);

}  // namespace cgcn
