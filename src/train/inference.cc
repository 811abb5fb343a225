#include "train/inference.h"

#include <algorithm>
#include <cstring>
#include <optional>
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

}  // namespace

Inference::Inference(const Model& model, const InferenceInput& input, uint64_t memory, bool show_progress)
    : model_(model),
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

// Columns of the embeddings that are alive at a time.
uint64_t alive_columns(const Model& model) {
  uint64_t alive = 0, below = 0;
  for (const InferenceStage& stage : model.stages()) {
    const uint64_t messages = stage.messages() == Messages::kOwn ? stage.message_columns() : 0;
    alive = std::max<uint64_t>(alive, below + messages + stage.out());
    below = stage.out();
  }
  return alive;
}

}  // namespace

uint64_t Inference::least_memory(const Model& model, uint64_t nodes) {
  return fixed_memory(model, nodes) + nodes * sizeof(float);
}

uint64_t Inference::whole_memory(const Model& model, const InferenceInput& input) {
  const uint64_t nodes = input.graph.num_nodes();
  return fixed_memory(model, nodes) + nodes * alive_columns(model) * sizeof(float) + input.graph.stored_bytes() +
         input.x.stored_bytes() + input.aggregated.stored_bytes();
}

// Everything in memory if the embeddings that are alive at a time fit; else slabs as wide as fit.
void Inference::plan(uint64_t memory) {
  const uint64_t nodes = input_.graph.num_nodes(), fixed = fixed_memory(model_, nodes);
  keeps_pages_ = whole_memory(model_, input_) <= memory;
  const uint64_t column = share_.rows() * sizeof(float);
  if (fixed + column * alive_columns(model_) <= memory) return;
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

// Every rank gets the rows of all.
void Inference::take_rows(const SlabMatrix& from, RowSample& sample) const {
  if (from.rows() == 0 && share_.is_alone()) return;
  sample.columns = std::min<size_t>(from.columns(), model_.options().hidden);  // without what is carried past layers
  sample.values.clear();
  Buffer<float> scratch(from.columns());
  std::string own;
  for (const NodeId v : sample.nodes) {
    if (v < share_.own().begin || v >= share_.own().end) continue;
    const size_t place = v - share_.own().begin;
    const ConstMatrix row = from.read_rows({place, place + 1}, scratch.data());
    own.append(reinterpret_cast<const char*>(row.data), sample.columns * sizeof(float));
  }
  // Nodes rise, and so do the ranks' ranges.
  for (const std::string& rows : share_.is_alone() ? std::vector{own} : share_.group().all_gather(own)) {
    const size_t before = sample.values.size();
    sample.values.resize(before + rows.size() / sizeof(float));
    if (!rows.empty()) std::memcpy(sample.values.data() + before, rows.data(), rows.size());
  }
}

void Inference::fill(RowRange nodes, NormalisedRows::SparseRows& links) const {
  rows_.fill(nodes.begin, nodes.end, links);
  share_.to_rows(links.columns);
}

SlabMatrix Inference::run(uint32_t layer, RowSample* below) const {
  SlabMatrix rows = run_stage(run_below(layer, below));
  share_.together([] { check_mappings(); });
  return rows;
}

StageInput Inference::run_below(uint32_t layer, RowSample* below) const {
  CGCN_CHECK(layer >= 1 && layer <= model_.num_layers());
  SlabMatrix embeddings;
  const std::vector<InferenceStage> stages = model_.stages();
  auto stage = stages.begin();
  for (; stage->number() < layer; ++stage) embeddings = run_stage(prepare_stage(*stage, std::move(embeddings)));
  if (below != nullptr && stage != stages.begin()) take_rows(embeddings, *below);
  return prepare_stage(stage->ending(), std::move(embeddings));
}

StageInput Inference::prepare_stage(const InferenceStage& stage, SlabMatrix own) const {
  StageInput input{stage, std::move(own)};
  if (stage.messages() == Messages::kOwn)
    input.made = make_messages(stage, input.own);
  else if (input.aggregates())
    share_.fetch(input.own);
  if (input.aggregates() && input.messages().spilled()) input.aggregated = aggregate_slabs(input.messages());
  return input;
}

SlabMatrix Inference::run_stage(const StageInput& input) const {
  SlabMatrix out = make_matrix(input.stage.out());
  for_each_block(input.stage.number() == 1 && !input.aggregates() ? "Evaluating layer 1" : "Evaluating",
                 [&](RowRange range) {
                   Buffer<float> scratch(out.spilled() ? range.size() * out.columns() : 0);
                   infer_block(input, range, out.place_rows(own_place(range), scratch.data()));
                   out.write_rows(own_place(range), scratch.data());
                 });
  return out;
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

// What a stage makes of its input before it is aggregated: narrower rows, (A·H)·W = A·(H·W), or activated ones.
SlabMatrix Inference::make_messages(const InferenceStage& stage, const SlabMatrix& own) const {
  SlabMatrix out = make_matrix(stage.message_columns());
  for_each_block("Evaluating", [&](RowRange range) {
    Buffer<float> own_scratch(own.spilled() ? range.size() * own.columns() : 0);
    Buffer<float> out_scratch(out.spilled() ? range.size() * out.columns() : 0);
    stage.message(own.read_rows(own_place(range), own_scratch.data()),
                  out.place_rows(own_place(range), out_scratch.data()));
    out.write_rows(own_place(range), out_scratch.data());
  });
  share_.fetch(out);
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
