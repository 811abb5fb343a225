#include "train/inference.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/mapping_faults.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/threads.h"
#include "kernels/spmm.h"

namespace cgcn {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::RowRange;

constexpr size_t kSlabUnit = 16;  // columns: a cache line

std::vector<InferenceStage> stages_to(const Model& model, uint32_t layer) {
  CGCN_CHECK(layer >= 1 && layer <= model.num_layers());
  std::vector<InferenceStage> stages;
  for (const InferenceStage& stage : model.stages())
    if (stage.number() <= layer) stages.push_back(stage.number() == layer ? stage.ending() : stage);
  return stages;
}

}  // namespace

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
}

namespace {

// A task holds rows of the aggregate, of the input (and of what its norm makes of it), of the output, and one slab's
// rows on the way to the file.
uint64_t fixed_memory(const Model& model, uint64_t nodes) {
  const uint64_t matrices =
      5 + (model.options().norm_place == NormPlace::kBefore ? 1 : 0) + (model.options().initial_residual > 0 ? 1 : 0);
  uint64_t widest = 0;
  for (const InferenceStage& stage : model.stages()) widest = std::max<uint64_t>(widest, stage.out());
  return matrices * widest * kInferenceBlock * sizeof(float) * static_cast<uint64_t>(thread_count()) +
         nodes * sizeof(float);
}

// Columns of what a stage gives to the next.
uint64_t passed_columns(const InferenceStage& stage, const InferenceStage* next) {
  return next != nullptr && next->narrows() ? next->kept_columns() + next->message_columns() : stage.out();
}

// Columns of the embeddings that are alive at a time.
uint64_t alive_columns(std::span<const InferenceStage> stages) {
  uint64_t alive = 0, below = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const InferenceStage& stage = stages[i];
    const uint64_t messages = stage.messages() == Messages::kOwn && !stage.narrows() ? stage.message_columns() : 0;
    const uint64_t passed = passed_columns(stage, i + 1 < stages.size() ? &stages[i + 1] : nullptr);
    alive = std::max(alive, below + messages + (stage.narrows() ? 0 : passed));
    below = passed;
  }
  return alive;
}

// Embeddings of all nodes, and what is mapped.
uint64_t rows_and_pages(std::span<const InferenceStage> stages, const InferenceInput& input) {
  return input.graph.num_nodes() * alive_columns(stages) * sizeof(float) + input.graph.stored_bytes() +
         input.x.stored_bytes() + input.aggregated.stored_bytes();
}

}  // namespace

uint64_t Inference::least_memory(const Model& model, uint64_t nodes) {
  return fixed_memory(model, nodes) + nodes * sizeof(float);
}

uint64_t Inference::whole_memory(const Model& model, const InferenceInput& input) {
  return fixed_memory(model, input.graph.num_nodes()) + rows_and_pages(stages_to(model, model.num_layers()), input);
}

// Everything in memory if the embeddings that are alive at a time fit; else slabs as wide as fit.
void Inference::plan(uint64_t memory) {
  const uint64_t nodes = input_.graph.num_nodes(), fixed = fixed_memory(model_, nodes);
  keeps_pages_ = fixed + rows_and_pages(stages_, input_) <= memory;
  const uint64_t column = share_.rows() * sizeof(float);
  if (fixed + column * alive_columns(stages_) <= memory) return;
  const uint64_t fitting = memory > fixed && column > 0 ? (memory - fixed) / column : 0;
  if (fitting == 0) refuse_memory_left(fixed + column, fmt::format("an evaluation of {} nodes", format_count(nodes)));
  slab_columns_ = fitting >= kSlabUnit ? fitting / kSlabUnit * kSlabUnit : fitting;
}

// Ranks exchange slabs: those of all are as narrow as the narrowest.
void Inference::agree_on_slabs() {
  if (share_.is_alone()) return;
  size_t narrowest = 0;
  for (const size_t columns : share_.group().all_gather_values(slab_columns_))
    if (columns > 0 && (narrowest == 0 || columns < narrowest)) narrowest = columns;
  slab_columns_ = narrowest;
}

void Inference::release_pages(RowRange rows) const {
  if (keeps_pages_) return;
  input_.graph.release_rows(rows.begin, rows.end);
  input_.x.release_rows(rows.begin, rows.end);
  input_.aggregated.release_rows(rows.begin, rows.end);
}

SlabMatrix Inference::make_matrix(size_t columns) const { return {share_.rows(), columns, slab_columns_}; }

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

void Inference::take_rows(RowRange nodes, ConstMatrix rows, RowSample& sample) const {
  const auto first = std::lower_bound(sample.nodes.begin(), sample.nodes.end(), nodes.begin);
  for (auto v = first; v != sample.nodes.end() && *v < nodes.end; ++v) {
    const auto place = static_cast<size_t>(v - sample.nodes.begin());
    std::copy_n(rows.row(*v - nodes.begin), sample.columns, &sample.values[place * sample.columns]);
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

void Inference::fill(RowRange nodes, NormalisedRows::SparseRows& links) const {
  rows_.fill(nodes.begin, nodes.end, links);
  share_.to_rows(links.columns);
}

StageInput Inference::run_below(RowSample* below) const {
  StageRows rows;
  for (size_t i = 0; i + 1 < stages_.size(); ++i)
    rows = run_stage(prepare_stage(stages_[i], std::move(rows)), &stages_[i + 1],
                     i + 2 == stages_.size() ? below : nullptr);
  return prepare_stage(stages_.back(), std::move(rows));
}

SlabMatrix Inference::run_last(StageInput input) const {
  StageRows rows = run_stage(std::move(input), nullptr, nullptr);
  share_.together([] { check_mappings(); });
  return std::move(rows.own);
}

void Inference::for_each_rows(const StageInput& input, size_t rows_at_once,
                              const std::function<void(ConstMatrix rows, NodeId first)>& use) const {
  CGCN_CHECK(share_.is_alone() && rows_at_once % kInferenceBlock == 0);
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
  if (next == nullptr || !next->narrows()) return {make_matrix(stage.out()), {}};
  const size_t kept = next->kept_columns(), messages = next->message_columns();
  const size_t slab = kept + messages <= slab_columns_ ? 0 : slab_columns_;
  return {{share_.rows(), kept, slab}, {share_.rows(), messages, slab}};
}

StageInput Inference::prepare_stage(const InferenceStage& stage, StageRows below) const {
  StageInput input{stage, std::move(below.own), std::move(below.messages)};
  const bool own_messages = stage.messages() == Messages::kOwn;
  if (own_messages && !stage.narrows()) input.made = make_messages(stage, input.own);
  if (input.aggregates()) share_.fetch(own_messages ? input.made : input.own);
  if (input.aggregates() && input.messages().spilled()) input.aggregated = aggregate_slabs(input.messages());
  return input;
}

Inference::StageRows Inference::run_stage(StageInput input, const InferenceStage* next, RowSample* sample) const {
  const InferenceStage& stage = input.stage;
  const bool narrows = next != nullptr && next->narrows();
  StageRows out;
  if (!stage.narrows()) out = make_rows(stage, next);
  SlabMatrix& own = stage.narrows() ? input.own : out.own;  // each row in the place of the one that it keeps
  if (sample != nullptr) begin_sample(stage.out(), *sample);
  for_each_block(stage.number() == 1 && !input.aggregates() ? "Evaluating layer 1" : "Evaluating", [&](RowRange range) {
    const RowRange place = own_place(range);
    Buffer<float> scratch(narrows || own.spilled() ? range.size() * stage.out() : 0);
    const Matrix given =
        narrows ? Matrix(scratch.data(), range.size(), stage.out()) : own.place_rows(place, scratch.data());
    infer_block(input, range, given);
    if (sample != nullptr) take_rows(range, given, *sample);
    if (!narrows) return own.write_rows(place, scratch.data());
    Buffer<float> kept(own.spilled() ? range.size() * own.columns() : 0);
    Buffer<float> made(own.spilled() ? range.size() * out.messages.columns() : 0);
    next->message(given, out.messages.place_rows(place, made.data()), own.place_rows(place, kept.data()));
    out.messages.write_rows(place, made.data());
    own.write_rows(place, kept.data());
  });
  if (sample != nullptr) end_sample(*sample);
  if (stage.narrows()) out.own = std::move(input.own);
  return out;
}

void Inference::infer_block(const StageInput& input, RowRange range, Matrix out) const {
  Buffer<float> own(input.own.spilled() ? range.size() * input.own.columns() : 0);
  Buffer<float> gathered(range.size() * input.messages().columns());
  InferenceRows rows{input_.x, input_.aggregated, static_cast<NodeId>(range.begin), static_cast<NodeId>(range.end)};
  if (input.aggregates()) {
    rows.own = input.own.read_rows(own_place(range), own.data());
    rows.aggregated = aggregate_rows(input.messages(), input.aggregated, range, gathered.data());
  }
  input.stage.infer(rows, out);
}

// What a stage makes of its input before it is aggregated: activated rows.
SlabMatrix Inference::make_messages(const InferenceStage& stage, const SlabMatrix& own) const {
  SlabMatrix out = make_matrix(stage.message_columns());
  for_each_block("Evaluating", [&](RowRange range) {
    Buffer<float> own_scratch(own.spilled() ? range.size() * own.columns() : 0);
    Buffer<float> out_scratch(out.spilled() ? range.size() * out.columns() : 0);
    stage.message(own.read_rows(own_place(range), own_scratch.data()),
                  out.place_rows(own_place(range), out_scratch.data()));
    out.write_rows(own_place(range), out_scratch.data());
  });
  return out;
}

// Rows of N(A)·M: computed, or read if M is spilled and they were computed slab by slab.
ConstMatrix Inference::aggregate_rows(const SlabMatrix& messages, const SlabMatrix& aggregated, RowRange range,
                                      float* scratch) const {
  if (messages.spilled()) return aggregated.read_rows(own_place(range), scratch);
  NormalisedRows::SparseRows links;
  fill(range, links);
  const Matrix out(scratch, range.size(), messages.columns());
  kernels::aggregate(links.view, messages.matrix(), {0, range.size()}, out);
  return out;
}

// N(A)·H of a spilled H, slab after slab: one slab in memory, rows in any order from there.
SlabMatrix Inference::aggregate_slabs(const SlabMatrix& source) const {
  SlabMatrix out = make_matrix(source.columns());
  Buffer<float> loaded;
  for (size_t slab = 0; slab < source.num_slabs(); ++slab) {
    const ConstMatrix from = source.read_slab(slab, loaded);
    for_each_block("Aggregating", [&](RowRange range) {
      NormalisedRows::SparseRows links;
      fill(range, links);
      Buffer<float> sums(range.size() * from.columns);
      kernels::aggregate(links.view, from, {0, range.size()}, Matrix(sums.data(), range.size(), from.columns));
      out.write_slab_rows(slab, own_place(range), sums.data());
    });
  }
  return out;
}

}  // namespace cgcn
