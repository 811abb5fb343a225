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
  MatrixStorage() = default;
  MatrixStorage(uint32_t rows, uint64_t entries) : offsets(size_t{rows} + 1), columns(entries), values(entries) {}
  SparseView view(uint32_t size) const { return {size, size, offsets.data(), columns.data(), values.data()}; }

  Buffer<uint64_t> offsets;
  Buffer<uint32_t> columns;
  Buffer<float> values;
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
  explicit Storage(const ClusterBatches& source)
      : order(source.layout_.num_clusters()),
        shift(source.layout_.num_clusters(), kNotChosen),
        chosen(source.q_),
        nodes(source.limits_.max_nodes),
        loss_rows(source.limits_.max_nodes),
        scales(source.limits_.max_nodes),
        forward(source.limits_.max_nodes, source.limits_.max_entries) {
    const Normalisation& normalisation = source.options_.normalisation;
    if (source.layout_.data.graph.directed())
      backward = MatrixStorage(source.limits_.max_nodes, source.limits_.max_entries);
    else if (!normalisation.keeps_symmetry())
      backward.values = Buffer<float>(source.limits_.max_entries);
    if (source.targets_file_ != nullptr) targets = Buffer<NodeId>(source.limits_.max_entries);
    if (source.weights_file_ != nullptr) weights = Buffer<float>(source.limits_.max_entries);
  }

  Buffer<uint32_t> order;  // the permutation of `order_epoch`
  uint64_t order_epoch = UINT64_MAX;
  Buffer<uint32_t> shift;  // per cluster: its first row in the batch, or kNotChosen
  Buffer<uint32_t> chosen;
  uint32_t num_chosen = 0;
  Buffer<NodeId> nodes;
  uint32_t num_nodes = 0;
  Buffer<uint32_t> loss_rows;
  Buffer<float> scales;
  Buffer<NodeId> targets;  // the rows of the chosen clusters, where they are read from disk
  Buffer<float> weights;
  MatrixStorage forward, backward;
  Block block;
};

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

uint64_t ClusterBatches::storage_bytes() const {
  const uint64_t nodes = limits_.max_nodes, entries = limits_.max_entries;
  const uint64_t matrix = (nodes + 1) * sizeof(uint64_t) + entries * (sizeof(uint32_t) + sizeof(float));
  const uint64_t backward = layout_.data.graph.directed()              ? matrix
                            : !options_.normalisation.keeps_symmetry() ? entries * sizeof(float)
                                                                       : 0;
  return 2 * sizeof(uint32_t) * uint64_t{layout_.num_clusters()} +
         nodes * (sizeof(NodeId) + sizeof(uint32_t) + sizeof(float)) + matrix + backward;
}

uint64_t ClusterBatches::most_entries(std::span<const uint64_t> offsets) const {
  std::vector<uint64_t> entries(layout_.num_clusters());
  for (size_t c = 0; c < entries.size(); ++c)
    entries[c] = offsets[layout_.cluster_offsets[c + 1]] - offsets[layout_.cluster_offsets[c]];
  return sum_of_largest(std::move(entries), q_);
}

uint64_t ClusterBatches::link_buffer_bytes() const {
  const bool weighted = layout_.data.graph.weighted();
  return layout_.files == nullptr ? 0 : limits_.max_entries * (sizeof(NodeId) + (weighted ? sizeof(float) : 0));
}

void ClusterBatches::read_links_from_disk() {
  CGCN_CHECK(layout_.files != nullptr);
  targets_file_ = std::make_unique<InputFile>(array_file(layout_.files->path(), "adjacency_targets"));
  if (layout_.data.graph.weighted())
    weights_file_ = std::make_unique<InputFile>(array_file(layout_.files->path(), "adjacency_weights"));
}

uint32_t ClusterBatches::batches_per_epoch() const { return (layout_.num_clusters() + q_ - 1) / q_; }

std::unique_ptr<BatchStorage> ClusterBatches::make_storage() const { return std::make_unique<Storage>(*this); }

void ClusterBatches::prepare(uint32_t epoch, uint32_t index, BatchStorage& storage_of_any_kind) const {
  CGCN_CHECK(index < batches_per_epoch());
  auto& storage = static_cast<Storage&>(storage_of_any_kind);
  choose_clusters(epoch, index, storage);
  list_nodes(storage);
  extract_block(storage);
  normalise_block(storage);
  transpose_block(storage);
  Batch& batch = storage.batch;
  batch.epoch = epoch;
  batch.index = index;
  batch.inputs = {storage.nodes.data(), storage.num_nodes};
  batch.blocks = {&storage.block, 1};
  batch.input_block = options_.aggregates_input ? &storage.block : nullptr;
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
  std::copy_n(storage.order.begin() + first, storage.num_chosen, storage.chosen.begin());
  std::sort(storage.chosen.begin(), storage.chosen.begin() + storage.num_chosen);
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
  storage.batch.loss_rows = {storage.loss_rows.data(), in_loss};
}

// The rows of the chosen clusters, one read a cluster and array.
void ClusterBatches::read_links(Storage& storage) const {
  const auto offsets = layout_.data.graph.offsets();
  uint64_t at = 0;
  for (uint32_t i = 0; i < storage.num_chosen; ++i) {
    const uint32_t c = storage.chosen[i];
    const EdgeOffset first = offsets[layout_.cluster_offsets[c]];
    const uint64_t count = offsets[layout_.cluster_offsets[size_t{c} + 1]] - first;
    targets_file_->read(kNpyHeaderBytes + first * sizeof(NodeId), storage.targets.data() + at, count * sizeof(NodeId));
    if (weights_file_ != nullptr)
      weights_file_->read(kNpyHeaderBytes + first * sizeof(float), storage.weights.data() + at, count * sizeof(float));
    at += count;
  }
  // What was checked when the layout was opened may have changed since.
  const NodeId n = layout_.data.num_nodes();
  if (std::any_of(storage.targets.data(), storage.targets.data() + at, [n](NodeId u) { return u >= n; }))
    throw Error("a link leads to a node that does not exist", targets_file_->path().string(),
                "the file has changed since the start: partition again with --force");
}

// A_BB with a place on the diagonal where the normalisation has one. Values are the weights, the diagonal's a_ii.
void ClusterBatches::extract_block(Storage& storage) const {
  const CsrGraph& graph = layout_.data.graph;
  const bool has_diagonal = options_.normalisation.has_diagonal();
  MatrixStorage& block = storage.forward;
  const bool from_disk = targets_file_ != nullptr;
  if (from_disk) read_links(storage);
  const NodeId* targets = from_disk ? storage.targets.data() : nullptr;  // of the next row
  const float* weights = from_disk ? storage.weights.data() : nullptr;
  uint64_t entry = 0;
  block.offsets[0] = 0;
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
      block.columns[entry] = column;
      block.values[entry++] = value;
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
    block.offsets[size_t{i} + 1] = entry;
    storage.scales[i] = options_.normalisation.scale(degree);
  }
  for (uint32_t i = 0; i < storage.num_chosen; ++i) storage.shift[storage.chosen[i]] = kNotChosen;
}

void ClusterBatches::normalise_block(Storage& storage) const {
  const bool own_backward = !layout_.data.graph.directed() && !options_.normalisation.keeps_symmetry();
  options_.normalisation.normalise(storage.forward.view(storage.num_nodes), storage.scales.data(),
                                   storage.forward.values.data(),
                                   own_backward ? storage.backward.values.data() : nullptr);
}

// Nothing to do where the graph is symmetric: then the transpose has the same places, and its values are known already.
void ClusterBatches::transpose_block(Storage& storage) const {
  const uint32_t n = storage.num_nodes;
  storage.block.forward = storage.forward.view(n);
  if (!layout_.data.graph.directed()) {
    storage.block.backward = storage.block.forward;
    if (!options_.normalisation.keeps_symmetry()) storage.block.backward.values = storage.backward.values.data();
    return;
  }
  MatrixStorage& to = storage.backward;
  storage.block.backward = transpose(storage.block.forward, to.offsets.data(), to.columns.data(), to.values.data());
}

}  // namespace cgcn
