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
//
// In bfloat16 the rows that stages pass on, their messages and the sums of these are bfloat16; products take packed
// copies of the weights, and sums are float32. These are float32: what the last stage gives, the messages of one that
// narrows and what it keeps, and what is carried to the head, each of whose numbers takes two columns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/buffer.h"
#include "nn/layer.h"

namespace cgcn {

class InferenceStage {
 public:
  // layers: of the whole network, of which begin … end are the stage's. initial: columns of H_0 that are carried.
  InferenceStage(std::span<const std::unique_ptr<Layer>> layers, size_t begin, size_t end, size_t initial,
                 kernels::Precision precision)
      : layers_(layers.subspan(begin, end - begin)),
        top_(*layers.back()),
        is_first_(begin == 0),
        initial_(initial),
        precision_(precision) {}
  // The same without what is carried on: it gives H_l alone.
  InferenceStage ending() const;
  // In bfloat16, before message() and infer(): copies the weights as they are now.
  void pack_weights();
  size_t packed_bytes() const;

  uint32_t number() const { return layers_.back()->number(); }  // l of H_l, which it gives
  size_t in() const { return own_columns() + carried_in(); }
  size_t out() const { return layers_.back()->out() + carried_out(); }
  kernels::Precision out_precision() const { return is_last() ? kernels::Precision::kFloat32 : precision_; }

  Messages messages() const { return copies_messages() ? Messages::kOwn : layers_.front()->messages(); }
  size_t message_columns() const { return copies_messages() ? own_columns() : layers_.front()->message_columns(); }
  kernels::Precision message_precision() const { return narrows() ? kernels::Precision::kFloat32 : precision_; }
  bool narrows() const { return kept_columns() < own_columns(); }
  size_t kept_columns() const { return layers_.front()->kept_columns(); }
  // kept: if it narrows.
  void message(kernels::ConstRows own, kernels::Rows messages, kernels::Rows kept = {}) const;
  void infer(const InferenceRows& rows, kernels::Rows out) const;

 private:
  size_t own_columns() const { return layers_.front()->in(); }
  size_t carried_in() const { return is_first_ ? 0 : carried_above(layers_.front()->number() - 1); }
  size_t carried_out() const { return is_ending_ ? 0 : carried_above(number()); }
  size_t carried_above(uint32_t layer) const;
  size_t head_columns() const;  // of a row: what is carried to the head
  bool is_last() const { return is_ending_ || number() == top_.number(); }
  void infer_layers(InferenceRows rows, kernels::Rows out) const;
  void carry_on(const InferenceRows& rows, kernels::Rows out) const;
  bool copies_messages() const { return layers_.front()->messages() == Messages::kInput && carried_in() > 0; }

  std::span<const std::unique_ptr<Layer>> layers_;
  const Layer& top_;  // of the network
  bool is_first_, is_ending_ = false;
  size_t initial_;
  kernels::Precision precision_;
  std::shared_ptr<const Buffer<BFloat16>> packed_;  // of one layer behind the other
};

std::vector<InferenceStage> make_stages(std::span<const std::unique_ptr<Layer>> layers, size_t initial,
                                        kernels::Precision precision);

}  // namespace cgcn
