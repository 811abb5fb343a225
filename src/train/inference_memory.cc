// How exact inference divides its memory, and how much it needs.
#include <algorithm>
#include <span>

#include "common/error.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/threads.h"
#include "kernels/bfloat16_gemm.h"
#include "train/inference.h"

namespace cgcn {
namespace {

using kernels::bytes_of;
using kernels::Precision;

constexpr size_t kSlabUnit = 16;  // columns of float32: a cache line

// A task holds rows of the aggregate, of the input (and of what its norm makes of it), of the output, and one slab's
// rows on the way to the file.
uint64_t fixed_memory(const Model& model, uint64_t nodes) {
  const uint64_t matrices =
      5 + (model.options().norm_place == NormPlace::kBefore ? 1 : 0) + (model.options().initial_residual > 0 ? 1 : 0);
  uint64_t widest = 0, packed = 0;
  for (const InferenceStage& stage : model.stages()) {
    widest = std::max<uint64_t>(widest, stage.out());
    packed += stage.packed_bytes();
  }
  uint64_t of_thread = matrices * widest * kInferenceBlock * sizeof(float);
  if (model.options().precision == Precision::kBFloat16) of_thread += kernels::product_scratch_bytes();
  if (!model.shape().sparse_input)  // X and A·X as layer 1 multiplies them: rounded, or one of them widened
    of_thread += model.shape().input_columns * kInferenceBlock * sizeof(float);
  return of_thread * static_cast<uint64_t>(thread_count()) + packed + nodes * sizeof(float);
}

// Bytes per node of what a stage gives to the next.
uint64_t passed_bytes(const InferenceStage& stage, const InferenceStage* next) {
  if (next == nullptr || !next->narrows()) return stage.out() * bytes_of(stage.out_precision());
  return (next->kept_columns() + next->message_columns()) * bytes_of(next->message_precision());
}

// Bytes per node of the embeddings that are alive at a time.
uint64_t alive_bytes(std::span<const InferenceStage> stages) {
  uint64_t alive = 0, below = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const InferenceStage& stage = stages[i];
    const bool makes = stage.messages() == Messages::kOwn && !stage.narrows();
    const uint64_t messages = makes ? stage.message_columns() * bytes_of(stage.message_precision()) : 0;
    const uint64_t passed = passed_bytes(stage, i + 1 < stages.size() ? &stages[i + 1] : nullptr);
    alive = std::max(alive, below + messages + (stage.narrows() ? 0 : passed));
    below = passed;
  }
  return alive;
}

// Embeddings of all nodes and the graph, mapped.
uint64_t rows_and_graph(std::span<const InferenceStage> stages, const InferenceInput& input) {
  return input.graph.num_nodes() * alive_bytes(stages) + input.graph.stored_bytes();
}

uint64_t feature_pages(const InferenceInput& input) { return input.x.stored_bytes() + input.aggregated.stored_bytes(); }

uint64_t round_down(uint64_t columns) { return columns / kSlabUnit * kSlabUnit; }
uint64_t round_up(uint64_t columns) { return round_down(columns + kSlabUnit - 1); }

uint64_t ordered_bytes(const Model& model, const CsrGraph& graph) {
  return OrderedRows::bytes(graph, model.options().layer_normalisation());
}

// Columns of float32 of a slab that is brought into the order of clusters: its sums are in memory too, and a copy of
// the edges. 0: there is too little memory, or there would be so many slabs that looking up the edges takes longer than
// to read rows from memory.
uint64_t ordered_slab(const Model& model, std::span<const InferenceStage> stages, const InferenceInput& input,
                      uint64_t memory) {
  constexpr uint64_t kMostSlabs = 8;
  const uint64_t nodes = input.graph.num_nodes();
  const uint64_t used = fixed_memory(model, nodes) + ordered_bytes(model, input.graph);
  uint64_t widest = 0;  // messages, in columns of float32
  for (const InferenceStage& stage : stages)
    if (stage.messages() != Messages::kNone && !stage.narrows())
      widest = std::max(widest, stage.message_columns() * bytes_of(stage.message_precision()) / sizeof(float));
  if (memory <= used || widest == 0 || nodes == 0) return 0;
  const uint64_t fitting = round_down((memory - used) / (2 * nodes * sizeof(float)));
  if (fitting * kMostSlabs < widest) return 0;
  const uint64_t slabs = (widest + fitting - 1) / fitting;
  return round_up((widest + slabs - 1) / slabs);
}

}  // namespace

uint64_t Inference::least_memory(const Model& model, uint64_t nodes) {
  return fixed_memory(model, nodes) + nodes * sizeof(float);
}

uint64_t Inference::whole_memory(const Model& model, const InferenceInput& input) {
  return fixed_memory(model, input.graph.num_nodes()) + rows_and_graph(stages_to(model, model.num_layers()), input) +
         feature_pages(input);
}

// Rows that fit are not spilled for its sake: if the graph does not fit beside them they stay in the nodes' order.
bool Inference::takes_order(const Model& model, const InferenceInput& input, uint64_t memory) {
  const std::vector<InferenceStage> stages = stages_to(model, model.num_layers());
  const uint64_t nodes = input.graph.num_nodes(), fixed = fixed_memory(model, nodes);
  if (fixed + nodes * alive_bytes(stages) <= memory) return fixed + rows_and_graph(stages, input) <= memory;
  return ordered_slab(model, stages, input, memory) > 0;
}

// Everything in memory if the embeddings that are alive at a time fit; else slabs, as wide as fit if they are in the
// order of the nodes.
void Inference::plan(uint64_t memory) {
  const uint64_t nodes = input_.graph.num_nodes(), fixed = fixed_memory(model_, nodes);
  const uint64_t rows_and_graph = fixed + cgcn::rows_and_graph(stages_, input_);
  keeps_graph_ = rows_and_graph <= memory;
  keeps_features_ = rows_and_graph + feature_pages(input_) <= memory;
  const InferenceOrder* order = share_.is_alone() ? input_.order : nullptr;
  if (keeps_graph_) order_ = order;
  const uint64_t column = share_.rows() * sizeof(float);
  if (fixed + share_.rows() * alive_bytes(stages_) <= memory) return;
  const uint64_t fitting = memory > fixed && column > 0 ? (memory - fixed) / column : 0;
  if (fitting == 0) refuse_memory_left(fixed + column, fmt::format("an evaluation of {} nodes", format_count(nodes)));
  slab_columns_ = room_columns_ = fitting >= kSlabUnit ? round_down(fitting) : fitting;
  const uint64_t ordered = order != nullptr ? ordered_slab(model_, stages_, input_, memory) : 0;
  if (ordered == 0) return;
  orders_slabs_ = true;
  slab_columns_ = ordered;
  room_columns_ = (memory - fixed - ordered_bytes(model_, input_.graph)) / column;
}

// Ranks exchange slabs: those of all are as narrow as the narrowest.
void Inference::agree_on_slabs() {
  if (share_.is_alone()) return;
  size_t narrowest = 0;
  for (const size_t columns : share_.group().all_gather_values(slab_columns_))
    if (columns > 0 && (narrowest == 0 || columns < narrowest)) narrowest = columns;
  slab_columns_ = room_columns_ = narrowest;
}

}  // namespace cgcn
