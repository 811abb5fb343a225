// The network as exact inference runs it: a stage is a layer that takes messages from other nodes (or the first one),
// with the layers above it that need a node's own row alone.
//
// What goes past layers is carried in further columns of the rows: H_0, if the convolutions take it, and what the head
// takes of the rows of all layers (Layer::carry). A stage's in() and out() have them, its messages have not.
//
//   for each stage:  M = message(H) of all nodes, unless the messages are H itself;  H' = infer(rows of H and of
//   N(A)·M)
//
// A stage that narrows takes less of H than H itself: message(H) makes both M and what it keeps, and H need not be
// stored.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/layer.h"

namespace cgcn {

class InferenceStage {
 public:
  // layers: of the whole network, of which begin … end are the stage's. initial: columns of H_0 that are carried.
  InferenceStage(std::span<const std::unique_ptr<Layer>> layers, size_t begin, size_t end, size_t initial)
      : layers_(layers.subspan(begin, end - begin)), top_(*layers.back()), is_first_(begin == 0), initial_(initial) {}
  // The same without what is carried on: it gives H_l alone.
  InferenceStage ending() const;

  uint32_t number() const { return layers_.back()->number(); }  // l of H_l, which it gives
  size_t in() const { return own_columns() + carried_in(); }
  size_t out() const { return layers_.back()->out() + carried_out(); }

  Messages messages() const { return copies_messages() ? Messages::kOwn : layers_.front()->messages(); }
  size_t message_columns() const { return copies_messages() ? own_columns() : layers_.front()->message_columns(); }
  bool narrows() const { return kept_columns() < own_columns(); }
  size_t kept_columns() const { return layers_.front()->kept_columns(); }
  // kept: if it narrows.
  void message(kernels::ConstMatrix own, kernels::Matrix messages, kernels::Matrix kept = {}) const;
  void infer(const InferenceRows& rows, kernels::Matrix out) const;

 private:
  size_t own_columns() const { return layers_.front()->in(); }
  size_t carried_in() const { return is_first_ ? 0 : carried_above(layers_.front()->number() - 1); }
  size_t carried_out() const { return is_ending_ ? 0 : carried_above(number()); }
  size_t carried_above(uint32_t layer) const;
  bool copies_messages() const { return layers_.front()->messages() == Messages::kInput && carried_in() > 0; }

  std::span<const std::unique_ptr<Layer>> layers_;
  const Layer& top_;  // of the network
  bool is_first_, is_ending_ = false;
  size_t initial_;
};

std::vector<InferenceStage> make_stages(std::span<const std::unique_ptr<Layer>> layers, size_t initial);

}  // namespace cgcn
