#include "batch/sampled_batches.h"

#include <algorithm>
#include <numeric>

#include "batch/transpose.h"
#include "common/random.h"

namespace cgcn {
namespace {

constexpr uint32_t kAbsent = UINT32_MAX;

// A layer's rows with compact columns, its transpose, and views of all of it.
struct LayerStorage {
  SampledRows rows;
  std::vector<uint64_t> transposed_offsets;
  std::vector<uint32_t> transposed_columns;
  std::vector<float> transposed_values;
};

}  // namespace

class SampledBatches::Storage final : public BatchStorage {
 public:
  Storage(NodeId num_nodes, size_t num_targets, uint32_t layers)
      : order(num_targets), position(num_nodes, kAbsent), layers(layers), adjacencies(layers), remainders(layers) {}

  Buffer<NodeId> order;  // the targets as `order_epoch` takes them
  uint64_t order_epoch = UINT64_MAX;
  Buffer<uint32_t> position;  // node → its row in the batch, or kAbsent
  std::vector<NodeId> nodes;
  std::vector<uint32_t> loss_rows;
  SamplerScratch scratch;
  std::vector<LayerStorage> layers;  // [l - 1]: of layer l
  std::vector<Adjacency> adjacencies;
  std::vector<Remainder> remainders;
};

SampledBatches::SampledBatches(const Dataset& data, std::unique_ptr<LayerSampler> sampler,
                               const SampledBatchOptions& options)
    : num_nodes_(data.num_nodes()), sampler_(std::move(sampler)), options_(options) {
  CGCN_CHECK(options.layers > 0 && options.targets > 0 && !(options.aggregates_input && has_remainders()));
  for (NodeId v = 0; v < num_nodes_; ++v)
    if (data.is_trained_on(v)) trained_on_.push_back(v);
}

uint32_t SampledBatches::batches_per_epoch() const {
  return static_cast<uint32_t>((trained_on_.size() + options_.targets - 1) / options_.targets);
}

std::unique_ptr<BatchStorage> SampledBatches::make_storage() const {
  return std::make_unique<Storage>(num_nodes_, trained_on_.size(), options_.layers);
}

void SampledBatches::prepare(uint32_t epoch, uint32_t index, BatchStorage& storage_of_any_kind) const {
  CGCN_CHECK(index < batches_per_epoch());
  auto& storage = static_cast<Storage&>(storage_of_any_kind);
  Batch& batch = storage.batch;
  batch.epoch = epoch;
  batch.index = index;
  choose_targets(epoch, index, storage);
  const uint32_t lowest = options_.aggregates_input ? 1 : 2;
  for (uint32_t layer = options_.layers; layer >= lowest; --layer) expand(layer, storage);
  for (const NodeId v : storage.nodes) storage.position[v] = kAbsent;
  batch.inputs = storage.nodes;
  batch.input_adjacency = options_.aggregates_input ? storage.adjacencies.data() : nullptr;
  batch.adjacencies = std::span<const Adjacency>(storage.adjacencies).subspan(1);
  if (has_remainders()) batch.remainders = std::span<const Remainder>(storage.remainders).subspan(1);
}

void SampledBatches::choose_targets(uint32_t epoch, uint32_t index, Storage& storage) const {
  if (storage.order_epoch != epoch) {
    std::copy(trained_on_.begin(), trained_on_.end(), storage.order.begin());
    Random(options_.seed, Purpose::kBatchOrder, epoch).shuffle(std::span<NodeId>(storage.order));
    storage.order_epoch = epoch;
  }
  const size_t begin = size_t{index} * options_.targets;
  const size_t count = std::min<size_t>(options_.targets, trained_on_.size() - begin);
  storage.nodes.assign(storage.order.begin() + begin, storage.order.begin() + begin + count);
  for (size_t i = 0; i < count; ++i) storage.position[storage.nodes[i]] = static_cast<uint32_t>(i);
  storage.loss_rows.resize(count);
  std::iota(storage.loss_rows.begin(), storage.loss_rows.end(), 0u);
  storage.batch.loss_rows = storage.loss_rows;
  storage.batch.num_outputs = static_cast<uint32_t>(count);
}

// The rows of a layer; nodes that they name for the first time go to the end of the layer below.
void SampledBatches::expand(uint32_t layer, Storage& storage) const {
  LayerStorage& of_layer = storage.layers[layer - 1];
  SampledRows& rows = of_layer.rows;
  const auto targets = static_cast<uint32_t>(storage.nodes.size());
  sampler_->sample({options_.seed, storage.batch.epoch, storage.batch.index, layer}, storage.nodes, rows,
                   storage.scratch);
  for (NodeId& column : rows.columns) {
    uint32_t& position = storage.position[column];
    if (position == kAbsent) {
      position = static_cast<uint32_t>(storage.nodes.size());
      storage.nodes.push_back(column);
    }
    column = position;
  }
  const auto sources = static_cast<uint32_t>(storage.nodes.size());
  const SparseView forward{targets, sources, rows.offsets.data(), rows.columns.data(), rows.values.data()};
  of_layer.transposed_offsets.resize(size_t{sources} + 1);
  of_layer.transposed_columns.resize(rows.columns.size());
  of_layer.transposed_values.resize(rows.columns.size());
  storage.adjacencies[layer - 1] = {
      forward, transpose(forward, of_layer.transposed_offsets.data(), of_layer.transposed_columns.data(),
                         of_layer.transposed_values.data())};
  if (!has_remainders()) return;
  Remainder& remainder = storage.remainders[layer - 1];
  remainder.of_history = {targets, num_nodes_, rows.history_offsets.data(), rows.history_columns.data(),
                          rows.history_values.data()};
  remainder.of_mean = forward;
  remainder.of_mean.values = rows.mean_values.data();
  if (rows.mean_values.empty()) remainder.of_mean = {};
}

}  // namespace cgcn
