#include "batch/cluster_batches.h"

#include <algorithm>
#include <numeric>

#include "batch/transpose.h"
#include "common/random.h"
#include "graph/npy.h"

namespace cgcn {
namespace {

constexpr uint32_t kNotChosen = UINT32_MAX;

// Room for a sparse matrix of the largest size.
struct MatrixStorage {
  void place(PlacedMemory& memory, uint64_t rows, uint64_t entries) {
    offsets = memory.take<uint64_t>(rows + 1);
    columns = memory.take<uint32_t>(entries);
    values = memory.take<float>(entries);
  }
  SparseView view(uint32_t size) const { return {size, size, offsets, columns, values}; }

  uint64_t* offsets = nullptr;
  uint32_t* columns = nullptr;
  float* values = nullptr;
};

uint64_t sum_of_largest(std::vector<uint64_t> values, size_t count) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count - 1), values.end(),
                   std::greater<>());
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), uint64_t{0});
}

}  // namespace

// Everything is sized for the largest batch at the start: preparing one allocates nothing.
class ClusterBatches::Storage final : public BatchStorage {
 public:
  explicit Storage(const ClusterStorageSizes& sizes) {
    memory_.lay_out([&] { place(sizes); });
    std::fill_n(shift, sizes.clusters, kNotChosen);
  }
  static uint64_t bytes(const ClusterStorageSizes& sizes) {
    Storage counted;
    counted.memory_.count([&] { counted.place(sizes); });
    return counted.memory_.bytes();
  }

  std::span<uint32_t> order;  // the permutation of `order_epoch`
  uint64_t order_epoch = UINT64_MAX;
  uint32_t* shift = nullptr;  // per cluster: its first row in the batch, or kNotChosen
  uint32_t* chosen = nullptr;
  uint32_t num_chosen = 0;
  NodeId* nodes = nullptr;
  uint32_t num_nodes = 0;
  uint32_t* loss_rows = nullptr;
  float* scales = nullptr;
  NodeId* targets = nullptr;  // the rows of the chosen clusters, if they are read from disk
  float* weights = nullptr;
  MatrixStorage forward, backward;
  Adjacency adjacency;

 private:
  Storage() = default;
  void place(const ClusterStorageSizes& sizes) {
    order = {memory_.take<uint32_t>(sizes.clusters), sizes.clusters};
    shift = memory_.take<uint32_t>(sizes.clusters);
    chosen = memory_.take<uint32_t>(sizes.chosen);
    nodes = memory_.take<NodeId>(sizes.batch.max_nodes);
    loss_rows = memory_.take<uint32_t>(sizes.batch.max_nodes);
    scales = memory_.take<float>(sizes.batch.max_nodes);
    const uint64_t entries = sizes.batch.max_entries;
    forward.place(memory_, sizes.batch.max_nodes, entries);
    if (sizes.transpose == ClusterStorageSizes::Transpose::kOwn)
      backward.place(memory_, sizes.batch.max_nodes, entries);
    else if (sizes.transpose == ClusterStorageSizes::Transpose::kOwnValues)
      backward.values = memory_.take<float>(entries);
    if (sizes.reads_targets) targets = memory_.take<NodeId>(entries);
    if (sizes.reads_weights) weights = memory_.take<float>(entries);
  }

  PlacedMemory memory_;
};

uint64_t ClusterBatches::storage_bytes(const ClusterStorageSizes& sizes) { return Storage::bytes(sizes); }

ClusterStorageSizes::ClusterStorageSizes(uint32_t p, uint32_t q, const BatchLimits& limits, bool directed,
                                         const Normalisation& normalisation)
    : clusters(p),
      chosen(q),
      batch(limits),
      transpose(directed                          ? Transpose::kOwn
                : !normalisation.keeps_symmetry() ? Transpose::kOwnValues
                                                  : Transpose::kShared) {}

ClusterBatches::ClusterBatches(ClusterLayout layout, const ClusterBatchOptions& options)
    : layout_(std::move(layout)), options_(options), q_(std::min(options.clusters_per_batch, layout_.num_clusters())) {
  CGCN_CHECK(options.clusters_per_batch > 0);
  const Dataset& data = layout_.data;
  const uint32_t p = layout_.num_clusters();
  cluster_of_ = Buffer<uint32_t>(data.num_nodes());
  std::vector<uint64_t> sizes(p), entries(p);
  for (uint32_t c = 0; c < p; ++c) {
    const NodeId begin = layout_.cluster_offsets[c], end = layout_.cluster_offsets[size_t{c} + 1];
    std::fill(cluster_of_.begin() + begin, cluster_of_.begin() + end, c);
    sizes[c] = end - begin;
    entries[c] = data.graph.offsets()[end] - data.graph.offsets()[begin] +
                 (options_.normalisation.has_diagonal() ? sizes[c] : 0);
  }
  limits_ = {.max_nodes = static_cast<uint32_t>(sum_of_largest(sizes, q_)), .max_entries = sum_of_largest(entries, q_)};
  in_loss_ = Buffer<uint8_t>(data.num_nodes());
  for (NodeId v = 0; v < data.num_nodes(); ++v) in_loss_[v] = data.is_trained_on(v) ? 1 : 0;
}

ClusterStorageSizes ClusterBatches::sizes(bool reads_links) const {
  const CsrGraph& graph = layout_.data.graph;
  ClusterStorageSizes sizes(layout_.num_clusters(), q_, limits_, graph.directed(), options_.normalisation);
  sizes.reads_targets = reads_links;
  sizes.reads_weights = reads_links && graph.weighted();
  return sizes;
}

uint64_t ClusterBatches::storage_bytes() const { return storage_bytes(sizes(/*reads_links=*/false)); }

uint64_t ClusterBatches::most_entries(std::span<const uint64_t> offsets) const {
  std::vector<uint64_t> entries(layout_.num_clusters());
  for (size_t c = 0; c < entries.size(); ++c)
    entries[c] = offsets[layout_.cluster_offsets[c + 1]] - offsets[layout_.cluster_offsets[c]];
  return sum_of_largest(std::move(entries), q_);
}

uint64_t ClusterBatches::link_buffer_bytes() const {
  return layout_.files == nullptr ? 0 : storage_bytes(sizes(/*reads_links=*/true)) - storage_bytes();
}

void ClusterBatches::read_links_from_disk() {
  CGCN_CHECK(layout_.files != nullptr);
  targets_file_ = std::make_unique<InputFile>(array_file(layout_.files->path(), "adjacency_targets"));
  if (layout_.data.graph.weighted())
    weights_file_ = std::make_unique<InputFile>(array_file(layout_.files->path(), "adjacency_weights"));
}

uint32_t ClusterBatches::batches_per_epoch() const { return (layout_.num_clusters() + q_ - 1) / q_; }

std::unique_ptr<BatchStorage> ClusterBatches::make_storage() const {
  return std::make_unique<Storage>(sizes(/*reads_links=*/targets_file_ != nullptr));
}

void ClusterBatches::prepare(uint32_t epoch, uint32_t index, BatchStorage& storage_of_any_kind) const {
  CGCN_CHECK(index < batches_per_epoch());
  auto& storage = static_cast<Storage&>(storage_of_any_kind);
  choose_clusters(epoch, index, storage);
  list_nodes(storage);
  extract_adjacency(storage);
  normalise_adjacency(storage);
  transpose_adjacency(storage);
  Batch& batch = storage.batch;
  batch.epoch = epoch;
  batch.index = index;
  batch.inputs = {storage.nodes, storage.num_nodes};
  batch.adjacencies = {&storage.adjacency, 1};
  batch.input_adjacency = options_.aggregates_input ? &storage.adjacency : nullptr;
  batch.num_outputs = storage.num_nodes;
}

void ClusterBatches::choose_clusters(uint32_t epoch, uint32_t index, Storage& storage) const {
  const uint32_t p = layout_.num_clusters();
  const uint32_t first = options_.draw == ClusterDraw::kPermutation ? index * q_ : 0;
  if (options_.draw == ClusterDraw::kPermutation) {
    if (storage.order_epoch != epoch) {
      shuffle_clusters(storage.order, options_.seed, epoch);
      storage.order_epoch = epoch;
    }
  } else {  // the first q of a permutation that is not carried further
    std::iota(storage.order.begin(), storage.order.end(), 0u);
    Random random(options_.seed, Purpose::kBatchOrder, epoch, index, 1);
    for (uint32_t i = 0; i < q_; ++i) std::swap(storage.order[i], storage.order[i + random.below(p - i)]);
  }
  storage.num_chosen = std::min(q_, p - first);
  std::copy_n(storage.order.begin() + first, storage.num_chosen, storage.chosen);
  std::sort(storage.chosen, storage.chosen + storage.num_chosen);
}

void ClusterBatches::list_nodes(Storage& storage) const {
  uint32_t rows = 0, in_loss = 0;
  for (uint32_t i = 0; i < storage.num_chosen; ++i) {
    const uint32_t c = storage.chosen[i];
    storage.shift[c] = rows;
    for (NodeId v = layout_.cluster_offsets[c]; v < layout_.cluster_offsets[size_t{c} + 1]; ++v) {
      if (in_loss_[v] != 0) storage.loss_rows[in_loss++] = rows;
      storage.nodes[rows++] = v;
    }
  }
  storage.num_nodes = rows;
  storage.batch.loss_rows = {storage.loss_rows, in_loss};
}

// The rows of the chosen clusters, one read a cluster and array.
void ClusterBatches::read_links(Storage& storage) const {
  const auto offsets = layout_.data.graph.offsets();
  uint64_t at = 0;
  for (uint32_t i = 0; i < storage.num_chosen; ++i) {
    const uint32_t c = storage.chosen[i];
    const EdgeOffset first = offsets[layout_.cluster_offsets[c]];
    const uint64_t count = offsets[layout_.cluster_offsets[size_t{c} + 1]] - first;
    targets_file_->read(kNpyHeaderBytes + first * sizeof(NodeId), storage.targets + at, count * sizeof(NodeId));
    if (weights_file_ != nullptr)
      weights_file_->read(kNpyHeaderBytes + first * sizeof(float), storage.weights + at, count * sizeof(float));
    at += count;
  }
  // What was checked when the layout was opened may have changed since.
  const NodeId n = layout_.data.num_nodes();
  if (std::any_of(storage.targets, storage.targets + at, [n](NodeId u) { return u >= n; }))
    throw Error("an edge leads to a node that does not exist", targets_file_->path().string(),
                "the file has changed since the start: partition again with --force");
}

// A_BB with a place on the diagonal if the normalisation has one. Values are the weights, the diagonal's a_ii.
void ClusterBatches::extract_adjacency(Storage& storage) const {
  const CsrGraph& graph = layout_.data.graph;
  const bool has_diagonal = options_.normalisation.has_diagonal();
  MatrixStorage& adjacency = storage.forward;
  const bool from_disk = targets_file_ != nullptr;
  if (from_disk) read_links(storage);
  const NodeId* targets = from_disk ? storage.targets : nullptr;  // of the next row
  const float* weights = from_disk ? storage.weights : nullptr;
  uint64_t entry = 0;
  adjacency.offsets[0] = 0;
  for (uint32_t i = 0; i < storage.num_nodes; ++i) {
    const NodeId v = storage.nodes[i];
    const uint64_t length = graph.degree(v);
    if (!from_disk) {
      targets = graph.targets().data() + graph.offsets()[v];
      if (graph.weighted()) weights = graph.weights().data() + graph.offsets()[v];
    }
    bool diagonal_due = has_diagonal;
    double degree = 0;
    const auto put = [&](uint32_t column, float value) {
      adjacency.columns[entry] = column;
      adjacency.values[entry++] = value;
    };
    for (uint64_t e = 0; e < length; ++e) {
      const NodeId u = targets[e];
      const uint32_t cluster = cluster_of_[u];
      if (storage.shift[cluster] == kNotChosen) continue;
      const float weight = graph.weighted() ? weights[e] : 1.0f;
      if (diagonal_due && u >= v) {
        if (u > v) put(i, 0);
        diagonal_due = false;
      }
      put(storage.shift[cluster] + (u - layout_.cluster_offsets[cluster]), weight);
      degree += weight;
    }
    if (diagonal_due) put(i, 0);
    targets += length;
    if (graph.weighted()) weights += length;
    adjacency.offsets[size_t{i} + 1] = entry;
    storage.scales[i] = options_.normalisation.scale(degree);
  }
  for (uint32_t i = 0; i < storage.num_chosen; ++i) storage.shift[storage.chosen[i]] = kNotChosen;
}

void ClusterBatches::normalise_adjacency(Storage& storage) const {
  const bool own_backward = !layout_.data.graph.directed() && !options_.normalisation.keeps_symmetry();
  options_.normalisation.normalise(storage.forward.view(storage.num_nodes), storage.scales, storage.forward.values,
                                   own_backward ? storage.backward.values : nullptr);
}

// Nothing to do if the graph is symmetric: then the transpose has the same places, and its values are known already.
void ClusterBatches::transpose_adjacency(Storage& storage) const {
  const uint32_t n = storage.num_nodes;
  storage.adjacency.forward = storage.forward.view(n);
  if (!layout_.data.graph.directed()) {
    storage.adjacency.backward = storage.adjacency.forward;
    if (!options_.normalisation.keeps_symmetry()) storage.adjacency.backward.values = storage.backward.values;
    return;
  }
  MatrixStorage& to = storage.backward;
  storage.adjacency.backward = transpose(storage.adjacency.forward, to.offsets, to.columns, to.values);
}

}  // namespace cgcn
