#include "train/inference.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/mapping_faults.h"
#include "common/threads.h"
#include "kernels/dropout.h"
#include "kernels/spmm.h"

namespace cgcn {
namespace {

using kernels::bytes_of;
using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::Matrix;
using kernels::Precision;
using kernels::RowBuffer;
using kernels::RowRange;
using kernels::Rows;

}  // namespace

std::vector<InferenceStage> Inference::stages_to(const Model& model, uint32_t layer) {
  CGCN_CHECK(layer >= 1 && layer <= model.num_layers());
  std::vector<InferenceStage> stages;
  for (const InferenceStage& stage : model.stages())
    if (stage.number() <= layer) stages.push_back(stage.number() == layer ? stage.ending() : stage);
  return stages;
}

Inference::Inference(const Model& model, const InferenceInput& input, uint64_t memory, bool show_progress,
                     uint32_t layer)
    : model_(model),
      stages_(stages_to(model, layer == 0 ? model.num_layers() : layer)),
      input_(input),
      share_alone_(input.graph),
      share_(input.share != nullptr ? *input.share : share_alone_),
      rows_(input.graph, model.options().layer_normalisation()),
      show_progress_(show_progress) {
  share_.together([&] { plan(memory); });
  agree_on_slabs();
  for (InferenceStage& stage : stages_) stage.pack_weights();
}

void Inference::release_pages(RowRange rows) const {
  if (!keeps_graph_) input_.graph.release_rows(rows.begin, rows.end);
  if (keeps_features_) return;
  input_.x.release_rows(rows.begin, rows.end);
  input_.aggregated.release_rows(rows.begin, rows.end);
}

SlabRows Inference::make_matrix(size_t columns, Precision precision) const {
  return {share_.rows(), columns, precision, slab_columns_ * sizeof(float) / bytes_of(precision)};
}

template <class Work>
void Inference::run_blocks(RowRange nodes, Progress* progress, Work&& work) const {
  parallel_blocks(nodes.size(), kInferenceBlock, [&](size_t begin, size_t end) {
    throw_if_interrupted();
    const RowRange block{nodes.begin + begin, nodes.begin + end};
    work(block);
    release_pages(block);
    if (progress != nullptr) progress->advance(end - begin);
  });
}

template <class Work>
void Inference::for_each_block(const char* title, Work&& work) const {
  std::optional<Progress> progress;
  if (show_progress_) progress.emplace(title, share_.own().size(), "nodes");
  share_.together([&] { run_blocks(share_.own(), progress ? &*progress : nullptr, work); });
}

void Inference::begin_sample(size_t columns, RowSample& sample) const {
  sample.columns = std::min<size_t>(columns, model_.options().hidden);  // without what is carried past layers
  sample.values.assign(sample.nodes.size() * sample.columns, 0);
}

void Inference::take_rows(RowRange range, bool block_of_nodes, ConstRows rows, RowSample& sample) const {
  for (size_t r = 0; r < range.size(); ++r) {
    const size_t place = range.begin + r;
    const auto node = static_cast<NodeId>(order_ != nullptr && !block_of_nodes ? order_->nodes()[place] : place);
    const auto found = std::lower_bound(sample.nodes.begin(), sample.nodes.end(), node);
    for (auto v = found; v != sample.nodes.end() && *v == node; ++v) {
      float* to = &sample.values[static_cast<size_t>(v - sample.nodes.begin()) * sample.columns];
      copy_rows(rows.tile(r, r + 1, 0, sample.columns), Matrix(to, 1, sample.columns));
    }
  }
}

// Every rank gets the rows of all: nodes rise, and so do the ranks' ranges.
void Inference::end_sample(RowSample& sample) const {
  if (share_.is_alone()) return;
  const auto place_of = [&](size_t node) {
    return sample.columns *
           static_cast<size_t>(std::lower_bound(sample.nodes.begin(), sample.nodes.end(), node) - sample.nodes.begin());
  };
  const size_t begin = place_of(share_.own().begin), end = place_of(share_.own().end);
  const std::string own(reinterpret_cast<const char*>(sample.values.data() + begin), (end - begin) * sizeof(float));
  auto* to = reinterpret_cast<char*>(sample.values.data());
  for (const std::string& rows : share_.group().all_gather(own)) to = std::copy(rows.begin(), rows.end(), to);
}

void Inference::fill(RowRange range, NormalisedRows::SparseRows& links) const {
  if (order_ != nullptr) {
    rows_.fill(order_->nodes().subspan(range.begin, range.size()), links);
    for (uint32_t& column : links.columns) column = order_->rows()[column];
    return;
  }
  rows_.fill(range.begin, range.end, links);
  share_.to_rows(links.columns);
}

StageInput Inference::run_below(RowSample* below) const {
  std::optional<OrderedRows> links;
  if (orders_slabs_) links.emplace(rows_, input_.order->rows());
  const OrderedRows* ordered = links ? &*links : nullptr;
  StageRows rows;
  for (size_t i = 0; i + 1 < stages_.size(); ++i)
    rows = run_stage(prepare_stage(stages_[i], std::move(rows), ordered), &stages_[i + 1],
                     i + 2 == stages_.size() ? below : nullptr);
  return prepare_stage(stages_.back(), std::move(rows), ordered);
}

SlabMatrix Inference::run_last(StageInput input) const {
  StageRows rows = run_stage(std::move(input), nullptr, nullptr);
  share_.together([] { check_mappings(); });
  return SlabMatrix(std::move(rows.own));
}

void Inference::for_each_rows(const StageInput& input, size_t rows_at_once,
                              const std::function<void(ConstMatrix rows, NodeId first)>& use) const {
  CGCN_CHECK(share_.is_alone() && order_ == nullptr && rows_at_once % kInferenceBlock == 0);
  const size_t nodes = share_.own().size();
  std::optional<Progress> progress;
  if (show_progress_) progress.emplace("Evaluating", nodes, "nodes");
  Buffer<float> memory(std::min(nodes, rows_at_once) * input.stage.out());
  for (size_t begin = 0; begin < nodes; begin += rows_at_once) {
    const RowRange window{begin, std::min(nodes, begin + rows_at_once)};
    const Matrix rows(memory.data(), window.size(), input.stage.out());
    run_blocks(window, progress ? &*progress : nullptr, [&](RowRange range) {
      infer_block(input, range, rows.rows_from(range.begin - begin, range.end - begin));
    });
    check_mappings();
    use(rows, static_cast<NodeId>(begin));
  }
}

// What a stage gives, if it does not narrow. If the next one does: what that takes instead, in memory if there is room
// for a slab as wide, so that its messages are never read from a file.
Inference::StageRows Inference::make_rows(const InferenceStage& stage, const InferenceStage* next) const {
  if (next == nullptr || !next->narrows()) return {make_matrix(stage.out(), stage.out_precision()), {}};
  const size_t kept = next->kept_columns(), messages = next->message_columns();
  const size_t slab = kept + messages <= room_columns_ ? 0 : slab_columns_;
  const Precision precision = next->message_precision();
  return {{share_.rows(), kept, precision, slab}, {share_.rows(), messages, precision, slab}};
}

// If features take fewer bytes than the row that is made of them, and are few: then to compute a row takes less time
// than to write one more to a file and to read it.
bool Inference::makes_own_again(const InferenceStage& stage) const {
  constexpr uint64_t kMostFeatures = 128;
  const InferenceStage& first = stages_[0];  // there is a second, or nothing would be aggregated from a file
  const uint64_t features = input_.x.stored_bytes() + input_.aggregated.stored_bytes();
  return stage.messages() == Messages::kInput && stage.number() == stages_[1].number() &&
         !model_.shape().sparse_input && model_.shape().input_columns <= kMostFeatures &&
         features <= input_.graph.num_nodes() * first.out() * bytes_of(first.out_precision());
}

StageInput Inference::prepare_stage(const InferenceStage& stage, StageRows below, const OrderedRows* ordered) const {
  StageInput input{stage, std::move(below.own), std::move(below.messages)};
  const bool own_messages = stage.messages() == Messages::kOwn;
  if (own_messages && !stage.narrows()) input.made = make_messages(stage, input.own);
  if (input.aggregates()) share_.fetch(own_messages ? input.made : input.own);
  if (!input.aggregates() || !input.messages().spilled()) return input;
  input.makes_own = makes_own_again(stage);
  if (!input.makes_own) input.aggregated = make_matrix(input.messages().columns(), input.messages().precision());
  SlabRows& sums = input.makes_own ? input.own : input.aggregated;
  if (ordered != nullptr)
    aggregate_ordered_slabs(*ordered, input.messages(), sums);
  else
    aggregate_slabs(input.messages(), sums);
  if (input.makes_own) input.aggregated = std::move(input.own);
  return input;
}

namespace {

// For rows of a matrix that is not in memory.
RowBuffer scratch_of(RowRange range, const SlabRows& rows) {
  return rows.spilled() ? RowBuffer(range.size(), rows.columns(), rows.precision()) : RowBuffer();
}

size_t row_bytes(const SlabRows& rows) { return rows.columns() * bytes_of(rows.precision()); }

}  // namespace

ConstRows Inference::read_block(const SlabRows& matrix, RowRange range, RowMap map, RowBuffer& scratch) const {
  if (map.empty()) {
    scratch = scratch_of(range, matrix);
    return matrix.read(own_place(range), scratch.data());
  }
  scratch = RowBuffer(range.size(), matrix.columns(), matrix.precision());
  const auto* from = static_cast<const char*>(matrix.all().data);
  for (size_t r = 0; r < range.size(); ++r)
    std::memcpy(static_cast<char*>(scratch.data()) + r * row_bytes(matrix),
                from + map[range.begin + r] * row_bytes(matrix), row_bytes(matrix));
  return scratch.rows();
}

Rows Inference::place_block(SlabRows& matrix, RowRange range, RowMap map, RowBuffer& scratch) const {
  if (map.empty()) {
    scratch = scratch_of(range, matrix);
    return matrix.place(own_place(range), scratch.data());
  }
  scratch = RowBuffer(range.size(), matrix.columns(), matrix.precision());
  return scratch.rows();
}

void Inference::write_block(SlabRows& matrix, RowRange range, RowMap map, RowBuffer& scratch) const {
  if (map.empty()) return matrix.write(own_place(range), scratch.data());
  auto* to = static_cast<char*>(matrix.all().data);
  for (size_t r = 0; r < range.size(); ++r)
    std::memcpy(to + map[range.begin + r] * row_bytes(matrix),
                static_cast<char*>(scratch.data()) + r * row_bytes(matrix), row_bytes(matrix));
}

Inference::StageRows Inference::run_stage(StageInput input, const InferenceStage* next, RowSample* sample) const {
  const InferenceStage& stage = input.stage;
  const bool narrows = next != nullptr && next->narrows();
  StageRows out;
  if (!stage.narrows()) out = make_rows(stage, next);
  SlabRows& own = stage.narrows() ? input.own : out.own;  // each row in the place of the one that it keeps
  if (sample != nullptr) begin_sample(stage.out(), *sample);
  const bool of_nodes = !input.aggregates();
  const RowMap own_map = map_rows(of_nodes, next == nullptr || narrows), message_map = map_rows(of_nodes, false);
  for_each_block(stage.number() == 1 && of_nodes ? "Evaluating layer 1" : "Evaluating", [&](RowRange range) {
    RowBuffer scratch, kept, made;
    if (narrows) scratch = RowBuffer(range.size(), stage.out(), stage.out_precision());
    const Rows given = narrows ? scratch.rows() : place_block(own, range, own_map, scratch);
    infer_block(input, range, given);
    if (sample != nullptr) take_rows(range, of_nodes, given, *sample);
    if (!narrows) return write_block(own, range, own_map, scratch);
    next->message(given, place_block(out.messages, range, message_map, made), place_block(own, range, own_map, kept));
    write_block(out.messages, range, message_map, made);
    write_block(own, range, own_map, kept);
  });
  if (sample != nullptr) end_sample(*sample);
  if (stage.narrows()) out.own = std::move(input.own);
  return out;
}

void Inference::infer_block(const StageInput& input, RowRange range, Rows out) const {
  RowBuffer own, gathered;
  InferenceRows rows{input_.x, input_.aggregated, static_cast<NodeId>(range.begin), static_cast<NodeId>(range.end)};
  if (input.makes_own) {
    own = RowBuffer(range.size(), stages_[0].out(), stages_[0].out_precision());
    stages_[0].infer(rows, own.rows());
    rows.own = own.rows();
  } else if (input.aggregates()) {
    rows.own = read_block(input.own, range, map_rows(false, input.stage.narrows()), own);
  }
  if (input.aggregates()) rows.aggregated = aggregate_rows(input, range, gathered);
  input.stage.infer(rows, out);
}

// What a stage makes of its input before it is aggregated: activated rows.
SlabRows Inference::make_messages(const InferenceStage& stage, const SlabRows& own) const {
  SlabRows out = make_matrix(stage.message_columns(), stage.message_precision());
  for_each_block("Evaluating", [&](RowRange range) {
    RowBuffer own_scratch = scratch_of(range, own), out_scratch = scratch_of(range, out);
    stage.message(own.read(own_place(range), own_scratch.data()), out.place(own_place(range), out_scratch.data()));
    out.write(own_place(range), out_scratch.data());
  });
  return out;
}

// Rows of N(A)·M: computed, or read if M is spilled and they were computed slab by slab.
ConstRows Inference::aggregate_rows(const StageInput& input, RowRange range, RowBuffer& scratch) const {
  const SlabRows& messages = input.aggregated.spilled() ? input.aggregated : input.messages();
  scratch = RowBuffer(range.size(), messages.columns(), messages.precision());
  if (messages.spilled()) return messages.read(own_place(range), scratch.data());
  NormalisedRows::SparseRows links;
  fill(range, links);
  kernels::aggregate(links.view, messages.all(), {0, range.size()}, scratch.rows());
  return scratch.rows();
}

// N(A)·H of a spilled H, slab after slab: one slab in memory, rows in any order from there.
void Inference::aggregate_slabs(const SlabRows& source, SlabRows& out) const {
  Buffer<char> loaded;
  for (size_t slab = 0; slab < source.num_slabs(); ++slab) {
    const ConstRows from = source.read_slab(slab, loaded);
    for_each_block("Aggregating", [&](RowRange range) {
      NormalisedRows::SparseRows links;
      fill(range, links);
      RowBuffer sums(range.size(), from.columns, from.precision);
      kernels::aggregate(links.view, from, {0, range.size()}, sums.rows());
      out.write_slab_rows(slab, own_place(range), sums.data());
    });
  }
}

// The same with the slab's rows, and their sums, in the order of clusters while they are in memory.
void Inference::aggregate_ordered_slabs(const OrderedRows& ordered, const SlabRows& source, SlabRows& out) const {
  constexpr size_t kRowsAtOnce = 1024;
  const Precision precision = source.precision();
  const size_t nodes = source.rows(), widest = source.slab_columns(0).size();
  SlabRows loaded(nodes, widest, precision, 0), sums(nodes, widest, precision, 0);
  for (size_t slab = 0; slab < source.num_slabs(); ++slab) {
    const size_t columns = source.slab_columns(slab).size(), bytes = columns * bytes_of(precision);
    const auto row_of = [&](SlabRows& rows, size_t row) { return static_cast<char*>(rows.all().data) + row * bytes; };
    parallel_blocks(nodes, kRowsAtOnce, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      RowBuffer rows(end - begin, columns, precision);
      source.read_slab_rows(slab, {begin, end}, rows.data());
      for (size_t v = begin; v < end; ++v)
        std::memcpy(row_of(loaded, input_.order->rows()[v]),
                    static_cast<const char*>(rows.data()) + (v - begin) * bytes, bytes);
    });
    const ConstRows from{loaded.all().data, nodes, columns, columns, precision};
    std::optional<Progress> progress;
    if (show_progress_) progress.emplace("Aggregating", nodes, "nodes");
    parallel_blocks(nodes, kInferenceBlock, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      NormalisedRows::SparseRows links;
      ordered.fill(begin, end, links);
      RowBuffer rows(end - begin, columns, precision);
      kernels::aggregate(links.view, from, {0, end - begin}, rows.rows());
      for (size_t r = begin; r < end; ++r)
        std::memcpy(row_of(sums, input_.order->nodes()[r]), static_cast<const char*>(rows.data()) + (r - begin) * bytes,
                    bytes);
      if (progress) progress->advance(end - begin);
    });
    parallel_blocks(nodes, kRowsAtOnce, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      out.write_slab_rows(slab, {begin, end}, row_of(sums, begin));
    });
  }
}

}  // namespace cgcn
