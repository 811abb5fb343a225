#include "train/slot_gradients.h"

#include <algorithm>

#include "common/error.h"

namespace cgcn {
namespace {

// Where the gradients begin that every batch has.
uint64_t dense_begin(const Model& model) {
  const std::vector<Parameter>& parameters = model.parameters();
  if (!model.shape().sparse_input) return 0;
  return parameters.size() > 1 ? parameters[1].offset : model.value_bytes() / sizeof(float);
}

}  // namespace

uint32_t own_batch_from(uint32_t index, uint32_t batches, uint32_t per_step, uint32_t rank, uint32_t ranks) {
  for (uint32_t first = index / per_step * per_step; first < batches; first += per_step) {
    const dist::SlotRange own = dist::slots_of(rank, ranks, std::min(per_step, batches - first));
    if (const uint32_t at = std::max(index, first + own.begin); at < first + own.end) return at;
  }
  return batches;
}

SlotGradients::SlotGradients(dist::Group& group, Model& model)
    : group_(group),
      model_(model),
      dense_begin_(dense_begin(model)),
      dense_(group, model.values().size() - dense_begin_) {
  for (const auto& [begin, end] : model.gradient_ranges())
    ranges_.emplace_back(std::max(begin, dense_begin_) - dense_begin_, std::max(end, dense_begin_) - dense_begin_);
  if (!model.shape().sparse_input) return;
  const Parameter& touched = model.parameters().front();
  CGCN_CHECK(touched.offset == 0);
  rows_.emplace(group, touched.rows, touched.columns);
}

uint64_t SlotGradients::planned_bytes(const Model& model, uint32_t slots, uint32_t ranks) {
  return dist::SlotSum::planned_bytes(model.value_bytes() / sizeof(float) - dense_begin(model), slots, ranks);
}

uint64_t SlotGradients::planned_row_bytes(const Model& model, uint64_t entries, uint32_t slots, uint32_t ranks) {
  if (!model.shape().sparse_input) return 0;
  const Parameter& touched = model.parameters().front();
  return dist::RowsSum::planned_bytes(touched.rows, touched.columns, std::min<uint64_t>(entries, touched.rows), slots,
                                      ranks);
}

SlotTotal SlotGradients::sum(uint32_t slots, const Compute& compute, const std::function<StepSignal()>& ask) {
  SlotTotal total{std::vector<SlotReport>(slots), 1, 0, {}};
  if (slots == 1 && group_.size() == 1) {
    total.slots[0] = compute(0, {});
    total.loss = total.slots[0].result.loss;
    if (ask) total.signal = ask();
    return total;
  }
  const dist::Traffic before = group_.traffic();
  dense_.begin(slots);
  if (rows_) rows_->begin(slots);
  for (uint32_t slot = dense_.own().begin; slot < dense_.own().end; ++slot) add_slot(slot, compute, total);
  if (dense_.own().size() == 0)
    for (const auto& [begin, end] : ranges_) dense_.add_nothing(begin, end);
  if (ask && group_.is_first()) total.signal = ask();
  share_reports(total);
  dense_.finish(dense_gradients());
  if (rows_) take_rows();
  traffic_.add(group_.traffic(), before);

  uint64_t labelled = 0;
  for (const SlotReport& slot : total.slots) {
    labelled += slot.result.labelled;
    total.loss += slot.result.loss * slot.result.labelled;
  }
  total.loss = labelled > 0 ? total.loss / static_cast<double>(labelled) : 0;
  if (slots > 1 && labelled > 0) total.scale = 1 / static_cast<double>(labelled);
  return total;
}

void SlotGradients::add_slot(uint32_t slot, const Compute& compute, SlotTotal& total) {
  GradientPass pass{total.slots.size() == 1 ? LossScale::kMean : LossScale::kSum, {}};
  const bool last = slot + 1 == dense_.own().end;
  if (last) pass.on_ready = [&](size_t i) { dense_.add_last(dense_gradients(), ranges_[i].first, ranges_[i].second); };
  total.slots[slot] = compute(slot, pass);
  if (!last) dense_.add(dense_gradients());
  if (rows_) rows_->add(model_.touched_rows(0).rows, model_.gradients().data());
}

// They are small: until all have arrived, slower ranks are waited for.
void SlotGradients::share_reports(SlotTotal& total) {
  const auto slots = static_cast<uint32_t>(total.slots.size());
  const auto bytes_of = [&](uint32_t rank) {
    const dist::SlotRange range = dist::slots_of(rank, group_.size(), slots);
    return std::as_writable_bytes(std::span(total.slots).subspan(range.begin, range.size()));
  };
  const auto signal = std::as_writable_bytes(std::span(&total.signal, 1));
  std::vector<dist::Outgoing> outgoing;
  std::vector<dist::Incoming> incoming;
  for (uint32_t r = 0; r < group_.size(); ++r) {
    if (r == group_.rank()) continue;
    outgoing.push_back({r, bytes_of(group_.rank())});
    incoming.push_back({r, bytes_of(r)});
    if (group_.is_first()) outgoing.push_back({r, signal});
    if (r == 0) incoming.push_back({r, signal});
  }
  group_.await_others(group_.start(outgoing, incoming));
}

void SlotGradients::take_rows() {
  const dist::RowsSum::Rows& sum = rows_->finish();
  const Parameter& touched = model_.parameters().front();
  // Rows that this rank's last batch touched are among them. Without a batch there are those of the step before.
  if (dense_.own().size() == 0)
    for (const uint32_t row : model_.touched_rows(0).rows)
      std::fill_n(&model_.gradients()[size_t{row} * touched.columns], touched.columns, 0.0f);
  for (size_t i = 0; i < sum.numbers.size(); ++i)
    std::copy_n(&sum.values[i * touched.columns], touched.columns,
                &model_.gradients()[size_t{sum.numbers[i]} * touched.columns]);
  model_.set_touched_rows(sum.numbers);
}

}  // namespace cgcn
