// The gradient of a step of several batches (its slots): that of the mean loss over their labelled nodes, summed in a
// fixed tree over the slots (dist/tree_sum.h). One process computes them in turn; the ranks of a group share them and
// add up what they have while the backward pass continues. The bits depend on the number of slots alone.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dist/slot_sum.h"
#include "nn/model.h"
#include "train/checkpoint.h"

namespace cgcn {

// What one batch came to.
struct SlotReport {
  StepResult result;
  Work work;
};

// What rank 0 wants of all after this step.
struct StepSignal {
  bool stop = false, save = false;
};

struct SlotTotal {
  std::vector<SlotReport> slots;  // of all ranks
  double scale = 1;               // what the gradient is to be multiplied by
  double loss = 0;                // mean over the labelled nodes of all slots
  StepSignal signal;
};

// The first batch at or behind `index` of an epoch that a rank computes: the batches of a step are its slots.
uint32_t own_batch_from(uint32_t index, uint32_t batches, uint32_t per_step, uint32_t rank, uint32_t ranks);

class SlotGradients {
 public:
  SlotGradients(dist::Group& group, Model& model);

  using Compute = std::function<SlotReport(uint32_t slot, const GradientPass& pass)>;
  // compute() computes the gradients of one of this rank's slots, in turn. After it model.gradients(), and the rows of
  // it that are touched, are those of all slots, on every rank. ask: rank 0's wish, when its slots are done.
  SlotTotal sum(uint32_t slots, const Compute& compute, const std::function<StepSignal()>& ask = {});
  // The first batch at or behind `index` of an epoch that this rank computes.
  uint32_t own_batch_from(uint32_t index, uint32_t batches, uint32_t per_step) const {
    return cgcn::own_batch_from(index, batches, per_step, group_.rank(), group_.size());
  }
  const dist::Traffic& traffic() const { return traffic_; }  // of the sums so far
  uint64_t bytes() const { return dense_.bytes() + (rows_ ? rows_->bytes() : 0); }
  // What the sums of so many slots take at most: of what every batch has, and of the rows that a batch touches, if
  // none has more than so many entries.
  static uint64_t planned_bytes(const Model& model, uint32_t slots, uint32_t ranks);
  static uint64_t planned_row_bytes(const Model& model, uint64_t entries, uint32_t slots, uint32_t ranks);

 private:
  void add_slot(uint32_t slot, const Compute& compute, SlotTotal& total);
  void share_reports(SlotTotal& total);
  void take_rows();
  std::span<float> dense_gradients() const { return model_.gradients().subspan(dense_begin_); }

  dist::Group& group_;
  Model& model_;
  uint64_t dense_begin_ = 0;                           // in front of it: the parameter of which batches touch some rows
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // in dense_gradients(), as they become ready
  dist::SlotSum dense_;
  std::optional<dist::RowsSum> rows_;
  dist::Traffic traffic_;
};

}  // namespace cgcn
