// Partitions of a store's nodes into clusters, and the layout in cluster order that training reads.
//
// A partition lives in STORE/partitions/NAME: itself a graph store (the training nodes' graph, or all with
// --transductive, in cluster order, so that a cluster is a contiguous range of rows in every array), plus
// cluster_offsets, order and A·X. It is bound to the store's hashes and to its own options; a stale or foreign one is
// refused.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/options.h"
#include "graph/dataset.h"
#include "graph/normalisation.h"
#include "graph/store.h"
#include "kernels/bfloat16.h"
#include "partition/stages.h"

namespace cgcn {

enum class PartitionMethod { kAuto, kMetis, kMetisRecursive, kMultilevel, kRandom, kFile };
enum class PartitionObjective { kCut, kVolume };
enum class NodeWeights { kUniform, kLabelled, kDegree };

// kAuto: graphs of so many adjacency entries and more go to the multilevel partitioner, smaller ones to METIS. A matter
// of the graph alone: neither memory nor threads change the clusters.
inline constexpr uint64_t kMultilevelEntries = 20'000'000;

inline constexpr uint64_t kPartitionMemory = uint64_t{512} << 20;  // if the caller does not say

struct PartitionOptions {
  uint32_t parts = 0;  // p; 0: about one per thousand nodes
  PartitionMethod method = PartitionMethod::kAuto;
  std::string from;  // kFile: .npy or text, a cluster number per node of the store
  PartitionObjective objective = PartitionObjective::kCut;
  float imbalance = 1.03f;  // the largest cluster over the mean
  NodeWeights node_weights = NodeWeights::kUniform;
  bool transductive = false;  // all nodes, not only the training nodes
  uint64_t seed = 1;
  std::string name;  // of the folder under STORE/partitions; empty: made from the options

  // These do not change the result, and are not recorded with it.
  bool replace = false;                // make it again if it is there
  uint64_t memory = kPartitionMemory;  // for the layout's buffers and the mapped pages that it keeps
  uint64_t metis_memory = UINT64_MAX;  // refused if METIS would take more

  void list_options(OptionList& list);
  // Checked, with what one option says of another: a file to read from means that file. Error if they contradict.
  PartitionOptions settled() const;
  PartitionOptions settled_for(const Dataset& data) const;  // the same, and kAuto becomes one of the others
  uint32_t parts_of(uint64_t nodes) const;                  // of so many nodes, more than none
  // Within a budget for the whole process. Error if the partition is still to be made and does not fit, with the
  // smallest budget that works: later() tells what the stages after it need, in addition to what the process has now.
  void take_memory(uint64_t budget, const Store& store, const std::function<uint64_t()>& later = {});
};

// The training view of a store in cluster order. Row r of everything here is node order[r] of the store.
// Identity features are sparse here: row r has its one at column order[r], so that columns mean the same as in the
// store.
struct ClusterLayout {
  Dataset data;                         // adjacency among these nodes, features, labels, split, the user's ids
  SharedArray<NodeId> order;            // row → node of the store
  SharedArray<NodeId> cluster_offsets;  // p + 1: cluster c is rows cluster_offsets[c] … cluster_offsets[c + 1)
  fs::path path;
  std::shared_ptr<const Store> files;  // where all of it is mapped from

  uint32_t num_clusters() const { return static_cast<uint32_t>(cluster_offsets.size() - 1); }

  // What is always in memory of a layout of so many of these nodes: all that has a number or two per node.
  static uint64_t table_bytes(const Dataset& data, uint64_t nodes);
};

struct PartitionResult {
  ClusterLayout layout;
  bool reused = false;  // it was there already
};

// What needs no clusters can be done while METIS, which has one thread, looks for them; it gets the bytes that METIS
// leaves of its memory, and says whether there was something to do. It may not be called at all: no METIS, one thread,
// a partition that is there.
using WorkBesideMetis = std::function<bool(uint64_t memory)>;

// Finds the partition of this store with these options, or makes it, telling `stages` where time and memory went.
PartitionResult ensure_partition(const Store& store, const PartitionOptions& options, PartitionStages* stages = nullptr,
                                 const WorkBesideMetis& beside = {});

// The layout of such a partition if there is one that belongs to this store; nothing is made.
std::optional<ClusterLayout> find_partition(const Store& store, const PartitionOptions& options);

// The order in which an epoch takes the clusters: a permutation of 0 … p-1.
void shuffle_clusters(std::span<uint32_t> clusters, uint64_t seed, uint32_t epoch);

// N(A)·X of the layout, computed once and kept in its folder. Dense stays dense (float32), sparse sparse; the
// identity's product is N(A). memory: for buffers; a smaller one takes longer and gives the same bits. rows_normalised:
// X with every row divided by its sum, whose product is then meant. precision: what a dense product is rounded to.
FeatureMatrix aggregated_features(const ClusterLayout& layout, const Normalisation& normalisation,
                                  uint64_t memory = kPartitionMemory, const FeatureMatrix* rows_normalised = nullptr,
                                  kernels::Precision precision = kernels::Precision::kFloat32);
// Where it is kept.
fs::path aggregated_path(const ClusterLayout& layout, const Normalisation& normalisation,
                         kernels::Precision precision = kernels::Precision::kFloat32,
                         const FeatureMatrix* rows_normalised = nullptr);
// X of the layout in bfloat16, rounded once and kept in its folder; X itself if it is not float32.
FeatureMatrix rounded_features(const ClusterLayout& layout);
fs::path rounded_path(const ClusterLayout& layout);
// The same for all nodes of the store in its own order, for evaluation; kept in STORE/cache.
FeatureMatrix aggregated_features(const Store& store, const Normalisation& normalisation,
                                  uint64_t memory = kPartitionMemory, const FeatureMatrix* rows_normalised = nullptr);
// With this much it takes the least time; below the least it cannot be kept to.
uint64_t aggregation_memory(const Dataset& data);
uint64_t least_aggregation_memory(const Dataset& data);
void forget_aggregated(const Store& store, const Normalisation& normalisation);  // so that it is computed again

}  // namespace cgcn
