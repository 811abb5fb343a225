#include "train/neighbourhood.h"

#include <algorithm>

#include "common/interrupt.h"
#include "common/mapping_faults.h"
#include "common/threads.h"
#include "graph/feature_reader.h"
#include "kernels/spmm.h"
#include "train/inference.h"

namespace cgcn {
namespace {

// Where node v is among rows that rise.
uint32_t place_of(NodeId v, std::span<const NodeId> rows) {
  return static_cast<uint32_t>(std::lower_bound(rows.begin(), rows.end(), v) - rows.begin());
}

// Rows that are in both lists, from where they are in the one to where they are in a block of the other.
Buffer<float> gather(const std::vector<uint32_t>& slots, std::span<const NodeId> rows, std::span<const NodeId> from,
                     const float* source, size_t width) {
  Buffer<float> out(slots.size() * width, 0.0f);
  for (size_t place = 0; place < slots.size(); ++place)
    if (slots[place] < rows.size())
      std::copy_n(source + place_of(rows[slots[place]], from) * width, width, out.data() + place * width);
  return out;
}

void scatter(const std::vector<uint32_t>& slots, const float* block, size_t width, Buffer<float>& out) {
  for (size_t place = 0; place < slots.size(); ++place)
    if (const size_t row = slots[place]; row * width < out.size())
      std::copy_n(block + place * width, width, out.data() + row * width);
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
  if (rows.empty() || rows.back() < first) return;
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

// Embeddings of two layers, the rows of X, the lists of rows, and what blocks hold on the way.
uint64_t NeighbourhoodInference::bytes() const {
  uint64_t most = 0, lists = 0, widest = data_.features.columns();
  for (const InferenceStage& stage : model_.stages()) {
    const uint32_t l = stage.number();
    if (l > layer_) break;
    const uint64_t width = stage.out(), below = l == 1 ? 0 : rows_[l - 1].size(), in = l == 1 ? 0 : stage.in();
    most = std::max(most, below * (in + 2 * std::max(in, width)) + rows_[l].size() * width);
    lists += rows_[l].size() * sizeof(NodeId);
    widest = std::max(widest, width);
  }
  const uint64_t x = uint64_t{rows_[0].size()} * data_.features.columns();
  const uint64_t blocks = 5 * widest * kInferenceBlock * static_cast<uint64_t>(thread_count());
  return (most + x + blocks) * sizeof(float) + lists + first_.bytes() + others_.bytes();
}

// Every row at its place in the graph's own blocks, in as few blocks as that takes; then those of the last block.
std::vector<NeighbourhoodInference::Slots> NeighbourhoodInference::arrange(const Rows& rows) const {
  const NodeId n = data_.num_nodes(), tail = n % kInferenceBlock;
  std::vector<Slots> blocks;
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

Buffer<float> NeighbourhoodInference::aggregate(const NormalisedRows& normalised, const Slots& slots, const Rows& rows,
                                                const Rows& from, kernels::ConstMatrix source) const {
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
  Buffer<float> out(slots.size() * source.columns);
  kernels::aggregate(view, source, {0, slots.size()}, kernels::Matrix(out.data(), slots.size(), source.columns));
  return out;
}

Buffer<float> NeighbourhoodInference::run_first(const InferenceStage& stage) const {
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
  Buffer<float> out(rows_[1].size() * width);
  for_each_block(rows_[1], [&](const Slots& slots) {
    Buffer<float> z(slots.size() * width);
    const auto last = static_cast<NodeId>(slots.size());
    if (aggregated_) {
      std::vector<NodeId> ids;
      for (const uint32_t row : slots) ids.push_back(row == kEmpty ? 0 : rows_[1][row]);
      FeatureReader::Rows own, product;
      x_reader.read(ids, own);
      product_reader.read(ids, product);
      stage.infer({own.matrix, product.matrix, 0, last}, {z.data(), slots.size(), width});
    } else {
      const auto width_of_x = static_cast<uint32_t>(columns);
      const FeatureMatrix own = FeatureMatrix::dense(gather(slots, rows_[1], rows_[0], x.data(), columns), width_of_x);
      const FeatureMatrix product = FeatureMatrix::dense(
          aggregate(first_, slots, rows_[1], rows_[0], {x.data(), rows_[0].size(), columns}), width_of_x);
      stage.infer({own, product, 0, last}, {z.data(), slots.size(), width});
    }
    scatter(slots, z.data(), width, out);
  });
  return out;
}

// What the stage makes of its input before it is aggregated. If it narrows, what it keeps takes the input's place.
Buffer<float> NeighbourhoodInference::run_messages(const InferenceStage& stage, Buffer<float>& below) const {
  const Rows& from = rows_[stage.number() - 1];
  const size_t width = stage.message_columns(), kept_width = stage.narrows() ? stage.kept_columns() : 0;
  Buffer<float> out(from.size() * width), all_kept(from.size() * kept_width);
  for_each_block(from, [&](const Slots& slots) {
    const Buffer<float> own = gather(slots, from, from, below.data(), stage.in());
    Buffer<float> made(slots.size() * width), kept(slots.size() * kept_width);
    stage.message({own.data(), slots.size(), stage.in()}, {made.data(), slots.size(), width},
                  {kept.data(), slots.size(), kept_width});
    scatter(slots, made.data(), width, out);
    scatter(slots, kept.data(), kept_width, all_kept);
  });
  if (stage.narrows()) below = std::move(all_kept);
  return out;
}

Buffer<float> NeighbourhoodInference::run_stage(const InferenceStage& stage, Buffer<float> below) const {
  const size_t in = stage.narrows() ? stage.kept_columns() : stage.in(), width = stage.out();
  const Rows &rows = rows_[stage.number()], &from = rows_[stage.number() - 1];
  const bool own_messages = stage.messages() == Messages::kOwn;
  const Buffer<float> made = own_messages ? run_messages(stage, below) : Buffer<float>();
  const kernels::ConstMatrix messages = own_messages
                                            ? kernels::ConstMatrix{made.data(), from.size(), stage.message_columns()}
                                            : kernels::ConstMatrix{below.data(), from.size(), in};
  const FeatureMatrix no_features;
  Buffer<float> out(rows.size() * width);
  for_each_block(rows, [&](const Slots& slots) {
    const Buffer<float> gathered = aggregate(others_, slots, rows, from, messages);
    const Buffer<float> own = gather(slots, rows, from, below.data(), in);
    Buffer<float> z(slots.size() * width);
    const InferenceRows inferred{.x = no_features,
                                 .aggregated_x = no_features,
                                 .begin = 0,
                                 .end = static_cast<NodeId>(slots.size()),
                                 .own = {own.data(), slots.size(), in},
                                 .aggregated = {gathered.data(), slots.size(), messages.columns}};
    stage.infer(inferred, {z.data(), slots.size(), width});
    scatter(slots, z.data(), width, out);
  });
  return out;
}

SlabMatrix NeighbourhoodInference::run() const {
  Buffer<float> embeddings;
  for (const InferenceStage& whole : model_.stages()) {
    if (whole.number() > layer_) break;
    const InferenceStage stage = whole.number() == layer_ ? whole.ending() : whole;
    embeddings = stage.messages() == Messages::kNone ? run_first(stage) : run_stage(stage, std::move(embeddings));
  }
  check_mappings();
  const size_t width = model_.layer_width(layer_);
  SlabMatrix out(nodes_.size(), width, 0);
  for (size_t i = 0; i < nodes_.size(); ++i)
    std::copy_n(embeddings.data() + place_of(nodes_[i], rows_[layer_]) * width, width, out.matrix().row(i));
  return out;
}

}  // namespace cgcn
