#include "batch/input_reader.h"

#include <algorithm>
#include <numeric>

#include "common/error.h"

namespace cgcn {

class InputReader::Storage final : public BatchStorage {
 public:
  std::unique_ptr<BatchStorage> inner;
  FeatureReader::Rows x, aggregated;
  Buffer<int32_t> classes;
  Buffer<uint8_t> bits;
  Buffer<float> values;
  Labels labels;
  Buffer<NodeId> numbers;  // 0, 1, 2 …
  BatchArrays arrays;
};

InputReader::InputReader(std::unique_ptr<BatchSource> batches, std::optional<FeatureReader> x,
                         std::optional<FeatureReader> aggregated, Labels labels)
    : batches_(std::move(batches)), x_(std::move(x)), aggregated_(std::move(aggregated)), labels_(std::move(labels)) {
  CGCN_CHECK(!batches_->has_remainders());  // a history is kept by the layout's rows, which are lost here
}

std::unique_ptr<BatchStorage> InputReader::make_storage() const {
  auto storage = std::make_unique<Storage>();
  storage->inner = batches_->make_storage();
  return storage;
}

void InputReader::prepare(uint32_t epoch, uint32_t index, BatchStorage& storage_of_any_kind) const {
  auto& storage = static_cast<Storage&>(storage_of_any_kind);
  batches_->prepare(epoch, index, *storage.inner);
  Batch& batch = storage.batch = storage.inner->batch;
  const std::span<const NodeId> ids = batch.inputs;
  if (x_) x_->read(ids, storage.x);
  if (aggregated_) aggregated_->read(ids, storage.aggregated);
  const std::shared_ptr<const void> nobody;
  if (labels_.multi_label()) {
    const size_t width = Labels::row_bytes(labels_.num_classes());
    storage.bits.reserve_discarding(ids.size() * width);
    for (size_t i = 0; i < ids.size(); ++i)
      std::copy_n(labels_.bit_row(ids[i]).begin(), width, storage.bits.data() + i * width);
    storage.labels = Labels::multi({{storage.bits.data(), ids.size() * width}, nobody}, labels_.num_classes());
  } else if (labels_.regression()) {
    storage.values.reserve_discarding(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) storage.values[i] = labels_.value_of(ids[i]);
    storage.labels = Labels::numbers({{storage.values.data(), ids.size()}, nobody});
  } else {
    storage.classes.reserve_discarding(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) storage.classes[i] = labels_.class_of(ids[i]);
    storage.labels = Labels::single({{storage.classes.data(), ids.size()}, nobody}, labels_.num_classes());
  }
  if (storage.numbers.size() < ids.size()) {
    storage.numbers = Buffer<NodeId>(ids.size());
    std::iota(storage.numbers.begin(), storage.numbers.end(), NodeId{0});
  }
  storage.arrays = {&storage.x.matrix, &storage.aggregated.matrix, &storage.labels};
  batch.arrays = &storage.arrays;
  batch.inputs = {storage.numbers.data(), ids.size()};
}

}  // namespace cgcn
