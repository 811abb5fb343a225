#include "train/inference.h"

#include <algorithm>
#include <optional>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/mapping_faults.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/progress.h"
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
      rows_(input.graph, model.options().layer_normalisation()),
      show_progress_(show_progress) {
  plan(memory);
}

namespace {

// A task holds rows of the aggregate, of the input, of the output, and one slab's rows on the way to the file.
uint64_t fixed_memory(const Model& model, uint64_t nodes) {
  uint64_t widest = 0;
  for (uint32_t l = 1; l <= model.num_layers(); ++l) widest = std::max<uint64_t>(widest, model.layer_width(l));
  return 5 * widest * kInferenceBlock * sizeof(float) * static_cast<uint64_t>(thread_count()) + nodes * sizeof(float);
}

// Columns of the embeddings that are alive at a time.
uint64_t alive_columns(const Model& model) {
  uint64_t alive = model.layer_width(1);
  for (uint32_t l = 2; l <= model.num_layers(); ++l)
    alive =
        std::max<uint64_t>(alive, model.layer_width(l - 1) + (model.projects_first(l) ? 2 : 1) * model.layer_width(l));
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

// Everything in memory where the embeddings that are alive at a time fit; else slabs as wide as fit.
void Inference::plan(uint64_t memory) {
  const uint64_t nodes = input_.graph.num_nodes(), fixed = fixed_memory(model_, nodes);
  keeps_pages_ = whole_memory(model_, input_) <= memory;
  const uint64_t column = nodes * sizeof(float);
  if (fixed + column * alive_columns(model_) <= memory) return;
  const uint64_t fitting = memory > fixed && column > 0 ? (memory - fixed) / column : 0;
  if (fitting == 0) refuse_memory_left(fixed + column, fmt::format("an evaluation of {} nodes", format_count(nodes)));
  slab_columns_ = fitting >= kSlabUnit ? fitting / kSlabUnit * kSlabUnit : fitting;
}

void Inference::release_pages(RowRange rows) const {
  if (keeps_pages_) return;
  input_.graph.release_rows(rows.begin, rows.end);
  input_.x.release_rows(rows.begin, rows.end);
  input_.aggregated.release_rows(rows.begin, rows.end);
}

SlabMatrix Inference::make_matrix(size_t columns) const { return {input_.graph.num_nodes(), columns, slab_columns_}; }

template <class Work>
void Inference::for_each_block(const char* title, Work&& work) const {
  std::optional<Progress> progress;
  if (show_progress_) progress.emplace(title, input_.graph.num_nodes(), "nodes");
  parallel_blocks(input_.graph.num_nodes(), kInferenceBlock, [&](size_t begin, size_t end) {
    throw_if_interrupted();
    work(RowRange{begin, end});
    release_pages({begin, end});
    if (progress) progress->advance(end - begin);
  });
}

SlabMatrix Inference::run(uint32_t layer) const {
  CGCN_CHECK(layer >= 1 && layer <= model_.num_layers());
  SlabMatrix embeddings = run_first_layer();
  for (uint32_t l = 2; l <= layer; ++l)
    embeddings =
        model_.projects_first(l) ? run_projected_layer(l, std::move(embeddings)) : run_layer(l, std::move(embeddings));
  check_mappings();
  return embeddings;
}

SlabMatrix Inference::run_first_layer() const {
  SlabMatrix out = make_matrix(model_.layer_width(1));
  for_each_block("Evaluating layer 1", [&](RowRange range) {
    Buffer<float> scratch(out.spilled() ? range.size() * out.columns() : 0);
    model_.infer_first_layer(input_.x, input_.aggregated, static_cast<NodeId>(range.begin),
                             static_cast<NodeId>(range.end), out.place_rows(range, scratch.data()).data);
    out.write_rows(range, scratch.data());
  });
  return out;
}

SlabMatrix Inference::run_layer(uint32_t layer, SlabMatrix own) const {
  SlabMatrix out = make_matrix(model_.layer_width(layer));
  const SlabMatrix aggregated = own.spilled() ? aggregate_slabs(own) : SlabMatrix();
  for_each_block("Evaluating", [&](RowRange range) {
    Buffer<float> own_scratch(own.spilled() ? range.size() * own.columns() : 0), gathered(range.size() * own.columns());
    Buffer<float> out_scratch(out.spilled() ? range.size() * out.columns() : 0);
    if (own.spilled()) {
      aggregated.read_rows(range, gathered.data());
    } else {
      NormalisedRows::Block block;
      rows_.fill(range.begin, range.end, block);
      kernels::aggregate(block.view, own.matrix(), {0, range.size()}, {}, {},
                         Matrix(gathered.data(), range.size(), own.columns()));
    }
    model_.infer_layer(layer, gathered.data(), own.read_rows(range, own_scratch.data()).data, range.size(),
                       out.place_rows(range, out_scratch.data()).data);
    out.write_rows(range, out_scratch.data());
  });
  return out;
}

// z = H·W_own + b + N(A)·(H·W_aggregated): the aggregation is as narrow as the layer's output.
SlabMatrix Inference::run_projected_layer(uint32_t layer, SlabMatrix own) const {
  const size_t width = model_.layer_width(layer);
  SlabMatrix projected = make_matrix(width), out = make_matrix(width);
  for_each_block("Evaluating", [&](RowRange range) {
    Buffer<float> own_scratch(own.spilled() ? range.size() * own.columns() : 0);
    Buffer<float> projected_scratch(own.spilled() ? range.size() * width : 0);
    Buffer<float> out_scratch(own.spilled() ? range.size() * width : 0);
    model_.project(layer, own.read_rows(range, own_scratch.data()).data, range.size(),
                   projected.place_rows(range, projected_scratch.data()).data,
                   out.place_rows(range, out_scratch.data()).data);
    projected.write_rows(range, projected_scratch.data());
    out.write_rows(range, out_scratch.data());
  });
  const SlabMatrix aggregated = projected.spilled() ? aggregate_slabs(projected) : SlabMatrix();
  for_each_block("Evaluating", [&](RowRange range) {
    Buffer<float> own_scratch(own.spilled() ? range.size() * own.columns() : 0);
    Buffer<float> out_scratch(out.spilled() ? range.size() * width : 0);
    Buffer<float> gathered(range.size() * width);
    if (projected.spilled()) {
      aggregated.read_rows(range, gathered.data());
    } else {
      NormalisedRows::Block block;
      rows_.fill(range.begin, range.end, block);
      kernels::aggregate(block.view, projected.matrix(), {0, range.size()}, {}, {},
                         Matrix(gathered.data(), range.size(), width));
    }
    const ConstMatrix part = out.read_rows(range, out_scratch.data());
    const Matrix z = out.place_rows(range, out_scratch.data());
    for (size_t i = 0; i < range.size() * width; ++i) z.data[i] = part.data[i] + gathered[i];
    model_.finish_layer(layer, own.read_rows(range, own_scratch.data()).data, range.size(), z.data);
    out.write_rows(range, out_scratch.data());
  });
  return out;
}

// N(A)·H of a spilled H, slab after slab: one slab in memory, rows in any order from there.
SlabMatrix Inference::aggregate_slabs(const SlabMatrix& source) const {
  SlabMatrix out = make_matrix(source.columns());
  Buffer<float> loaded;
  for (size_t slab = 0; slab < source.num_slabs(); ++slab) {
    const ConstMatrix from = source.read_slab(slab, loaded);
    for_each_block("Aggregating", [&](RowRange range) {
      NormalisedRows::Block block;
      rows_.fill(range.begin, range.end, block);
      Buffer<float> sums(range.size() * from.columns);
      kernels::aggregate(block.view, from, {0, range.size()}, {}, {}, Matrix(sums.data(), range.size(), from.columns));
      out.write_slab_rows(slab, range, sums.data());
    });
  }
  return out;
}

}  // namespace cgcn
