#include "train/neighbourhood.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/interrupt.h"
#include "common/mapping_faults.h"
#include "common/threads.h"
#include "graph/feature_reader.h"
#include "kernels/bfloat16_gemm.h"
#include "kernels/gemm.h"
#include "kernels/spmm.h"
#include "train/inference.h"

namespace cgcn {
namespace {

using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::Precision;
using kernels::RowBuffer;

// Where node v is among rows that rise.
uint32_t place_of(NodeId v, std::span<const NodeId> rows) {
  return static_cast<uint32_t>(std::lower_bound(rows.begin(), rows.end(), v) - rows.begin());
}

// Bytes, whatever they are: float32 numbers may lie in columns of bfloat16 (inference_stage.h).
void copy_row(ConstRows from, size_t row, kernels::Rows to, size_t place) {
  std::memcpy(to.rows_from(place, place + 1).data, from.rows_from(row, row + 1).data,
              to.columns * kernels::bytes_of(to.precision));
}

// Rows that are in both lists, from where they are in the one to where they are in a block of the other.
RowBuffer gather(const std::vector<uint32_t>& slots, std::span<const NodeId> rows, std::span<const NodeId> from,
                 ConstRows source) {
  RowBuffer out(slots.size(), source.columns, source.precision);
  std::memset(out.data(), 0, slots.size() * source.columns * kernels::bytes_of(source.precision));
  for (size_t place = 0; place < slots.size(); ++place)
    if (slots[place] < rows.size()) copy_row(source, place_of(rows[slots[place]], from), out.rows(), place);
  return out;
}

void scatter(const std::vector<uint32_t>& slots, ConstRows block, RowBuffer& out) {
  for (size_t place = 0; place < slots.size(); ++place)
    if (const size_t row = slots[place]; row < out.rows().rows) copy_row(block, place, out.rows(), row);
}

}  // namespace

NeighbourhoodInference::NeighbourhoodInference(const Model& model, const Dataset& data,
                                               const Normalisation& first_layer, const ColumnScaling& scaling,
                                               std::optional<FeatureMatrix> aggregated)
    : model_(model),
      data_(data),
      scaling_(scaling),
      aggregated_(std::move(aggregated)),
      first_(data.graph, first_layer),
      others_(data.graph, model.options().layer_normalisation()) {}

bool NeighbourhoodInference::possible() const {
  if (model_.options().input_projection || scaling_.rows || data_.features.kind() == FeatureMatrix::Kind::kIdentity)
    return false;
  return data_.features.is_dense() || aggregated_.has_value();
}

void NeighbourhoodInference::complete_last_block(Rows& rows) const {
  const NodeId n = data_.num_nodes(), first = n - n % kInferenceBlock;
  if (kernels::rows_are_independent() || rows.empty() || rows.back() < first) return;
  rows.erase(std::lower_bound(rows.begin(), rows.end(), first), rows.end());
  for (NodeId v = first; v < n; ++v) rows.push_back(v);
}

NeighbourhoodInference::Rows NeighbourhoodInference::with_neighbours(const Rows& rows) const {
  Rows all = rows;
  for (const NodeId v : rows)
    for (const NodeId u : data_.graph.neighbours(v)) all.push_back(u);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool NeighbourhoodInference::plan(std::span<const NodeId> nodes, uint32_t layer, uint64_t memory) {
  layer_ = layer;
  nodes_.assign(nodes.begin(), nodes.end());
  rows_.assign(layer + 1, {});
  planned_rows_ = 0;
  Rows rows = nodes_;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const uint64_t most = uint64_t{data_.num_nodes()} * layer / 2;
  for (uint32_t l = layer; l >= 1; --l) {
    complete_last_block(rows);
    planned_rows_ += rows.size();
    rows_[l] = rows;
    if (planned_rows_ > most) return false;
    if (l == 1 && aggregated_) break;
    uint64_t links = 0;
    for (const NodeId v : rows) links += data_.graph.degree(v);
    if (links > data_.graph.num_entries() / 2) return false;
    rows = with_neighbours(rows);
  }
  if (!aggregated_) rows_[0] = rows;
  return bytes() <= memory;
}

// Embeddings of two layers, the rows of X, the lists of rows, and what blocks hold on the way. Of embeddings in
// bfloat16 it counts twice what they take.
uint64_t NeighbourhoodInference::bytes() const {
  uint64_t most = 0, lists = 0, packed = 0, widest = data_.features.columns();
  for (const InferenceStage& stage : model_.stages()) {
    const uint32_t l = stage.number();
    if (l > layer_) break;
    const uint64_t width = stage.out(), below = l == 1 ? 0 : rows_[l - 1].size(), in = l == 1 ? 0 : stage.in();
    most = std::max(most, below * (in + 2 * std::max(in, width)) + rows_[l].size() * width);
    lists += rows_[l].size() * sizeof(NodeId);
    packed += stage.packed_bytes();
    widest = std::max(widest, width);
  }
  const uint64_t x = uint64_t{rows_[0].size()} * data_.features.columns();
  const uint64_t blocks = 5 * widest * kInferenceBlock * static_cast<uint64_t>(thread_count());
  const uint64_t scratch = model_.options().precision == kernels::Precision::kBFloat16
                               ? kernels::product_scratch_bytes() * static_cast<uint64_t>(thread_count())
                               : 0;
  return (most + x + blocks) * sizeof(float) + packed + scratch + lists + first_.bytes() + others_.bytes();
}

// One row behind the other. Or, if a row's bits depend on its place, every row at its place in the graph's own blocks,
// in as few blocks as that takes; then those of the last block.
std::vector<NeighbourhoodInference::Slots> NeighbourhoodInference::arrange(const Rows& rows) const {
  const NodeId n = data_.num_nodes(), tail = n % kInferenceBlock;
  std::vector<Slots> blocks;
  if (kernels::rows_are_independent()) {
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if (i % kInferenceBlock == 0) blocks.emplace_back();
      blocks.back().push_back(i);
    }
    return blocks;
  }
  std::vector<uint32_t> taken(kInferenceBlock, 0);  // blocks whose place is taken
  const uint32_t whole = place_of(n - tail, rows);
  for (uint32_t i = 0; i < whole; ++i) {
    const size_t place = rows[i] % kInferenceBlock, block = taken[place]++;
    if (block == blocks.size()) blocks.emplace_back(kInferenceBlock, kEmpty);
    blocks[block][place] = i;
  }
  if (whole == rows.size()) return blocks;
  blocks.emplace_back();
  for (uint32_t i = whole; i < rows.size(); ++i) blocks.back().push_back(i);
  return blocks;
}

template <class Work>
void NeighbourhoodInference::for_each_block(const Rows& rows, Work&& work) const {
  const std::vector<Slots> blocks = arrange(rows);
  parallel_blocks(blocks.size(), 1, [&](size_t block, size_t) {
    throw_if_interrupted();
    work(blocks[block]);
  });
}

RowBuffer NeighbourhoodInference::aggregate(const NormalisedRows& normalised, const Slots& slots, const Rows& rows,
                                            const Rows& from, ConstRows source) const {
  NormalisedRows::SparseRows links;
  links.offsets.assign(1, 0);
  for (const uint32_t row : slots) {
    if (row != kEmpty)
      normalised.for_each(rows[row], [&](NodeId u, float value) {
        links.columns.push_back(place_of(u, from));
        links.values.push_back(value);
      });
    links.offsets.push_back(links.columns.size());
  }
  const SparseView view{static_cast<uint32_t>(slots.size()), static_cast<uint32_t>(from.size()), links.offsets.data(),
                        links.columns.data(), links.values.data()};
  RowBuffer out(slots.size(), source.columns, source.precision);
  kernels::aggregate(view, source, {0, slots.size()}, out.rows());
  return out;
}

namespace {

// As features of so many rows.
FeatureMatrix as_features(ConstRows rows) {
  Buffer<float> values(rows.rows * rows.columns);
  std::copy_n(rows.floats().data, values.size(), values.data());
  return FeatureMatrix::dense(std::move(values), static_cast<uint32_t>(rows.columns));
}

}  // namespace

RowBuffer NeighbourhoodInference::run_first(const InferenceStage& stage) const {
  const std::vector<uint32_t>& chosen = scaling_.columns;
  const size_t width = stage.out(), columns = chosen.empty() ? data_.features.columns() : chosen.size();
  Buffer<float> x(rows_[0].size() * columns);  // scaled, if A·X is not there
  parallel_blocks(rows_[0].size(), kInferenceBlock, [&](size_t begin, size_t end) {
    std::vector<float> whole(data_.features.columns());
    for (size_t i = begin; i < end; ++i) {
      float* row = x.data() + i * columns;
      data_.features.copy_row(rows_[0][i], chosen.empty() ? row : whole.data());
      for (size_t c = 0; c < chosen.size(); ++c) row[c] = whole[chosen[c]];
      scaling_.apply(row);
    }
  });
  const FeatureReader x_reader(data_.features), product_reader(aggregated_.value_or(FeatureMatrix()));
  RowBuffer out(rows_[1].size(), width, stage.out_precision());
  for_each_block(rows_[1], [&](const Slots& slots) {
    RowBuffer z(slots.size(), width, stage.out_precision());
    const auto last = static_cast<NodeId>(slots.size());
    if (aggregated_) {
      std::vector<NodeId> ids;
      for (const uint32_t row : slots) ids.push_back(row == kEmpty ? 0 : rows_[1][row]);
      FeatureReader::Rows own, product;
      x_reader.read(ids, own);
      product_reader.read(ids, product);
      stage.infer({own.matrix, product.matrix, 0, last}, z.rows());
    } else {
      const ConstMatrix all(x.data(), rows_[0].size(), columns);
      const FeatureMatrix own = as_features(gather(slots, rows_[1], rows_[0], all).rows());
      const FeatureMatrix product = as_features(aggregate(first_, slots, rows_[1], rows_[0], all).rows());
      stage.infer({own, product, 0, last}, z.rows());
    }
    scatter(slots, z.rows(), out);
  });
  return out;
}

// What the stage makes of its input before it is aggregated. If it narrows, what it keeps takes the input's place.
RowBuffer NeighbourhoodInference::run_messages(const InferenceStage& stage, RowBuffer& below) const {
  const Rows& from = rows_[stage.number() - 1];
  const size_t kept_width = stage.narrows() ? stage.kept_columns() : 0;
  const Precision precision = stage.message_precision();
  RowBuffer out(from.size(), stage.message_columns(), precision), all_kept(from.size(), kept_width, precision);
  for_each_block(from, [&](const Slots& slots) {
    const RowBuffer own = gather(slots, from, from, std::as_const(below).rows());
    RowBuffer made(slots.size(), stage.message_columns(), precision), kept(slots.size(), kept_width, precision);
    stage.message(own.rows(), made.rows(), kept.rows());
    scatter(slots, made.rows(), out);
    if (stage.narrows()) scatter(slots, kept.rows(), all_kept);
  });
  if (stage.narrows()) below = std::move(all_kept);
  return out;
}

RowBuffer NeighbourhoodInference::run_stage(const InferenceStage& stage, RowBuffer below) const {
  const Rows &rows = rows_[stage.number()], &from = rows_[stage.number() - 1];
  const bool own_messages = stage.messages() == Messages::kOwn;
  const RowBuffer made = own_messages ? run_messages(stage, below) : RowBuffer();
  const ConstRows kept = std::as_const(below).rows(), messages = own_messages ? made.rows() : kept;
  const FeatureMatrix no_features;
  RowBuffer out(rows.size(), stage.out(), stage.out_precision());
  for_each_block(rows, [&](const Slots& slots) {
    const RowBuffer gathered = aggregate(others_, slots, rows, from, messages);
    const RowBuffer own = gather(slots, rows, from, kept);
    RowBuffer z(slots.size(), stage.out(), stage.out_precision());
    const InferenceRows inferred{.x = no_features,
                                 .aggregated_x = no_features,
                                 .begin = 0,
                                 .end = static_cast<NodeId>(slots.size()),
                                 .own = own.rows(),
                                 .aggregated = gathered.rows()};
    stage.infer(inferred, z.rows());
    scatter(slots, z.rows(), out);
  });
  return out;
}

SlabMatrix NeighbourhoodInference::run() const {
  RowBuffer embeddings;
  for (const InferenceStage& whole : model_.stages()) {
    if (whole.number() > layer_) break;
    InferenceStage stage = whole.number() == layer_ ? whole.ending() : whole;
    stage.pack_weights();
    embeddings = stage.messages() == Messages::kNone ? run_first(stage) : run_stage(stage, std::move(embeddings));
  }
  check_mappings();
  SlabMatrix out(nodes_.size(), model_.layer_width(layer_), 0);
  for (size_t i = 0; i < nodes_.size(); ++i)
    copy_row(embeddings.rows(), place_of(nodes_[i], rows_[layer_]), out.all(), i);
  return out;
}

}  // namespace cgcn
