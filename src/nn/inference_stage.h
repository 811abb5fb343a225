// The network as exact inference runs it: a stage is a layer that takes messages from other nodes (or the first one),
// with the layers above it that need a node's own row alone.
//
//   for each stage:  M = message(H) of all nodes, unless the messages are H itself;  H' = infer(rows of H and of
//   N(A)·M)
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/layer.h"

namespace cgcn {

class InferenceStage {
 public:
  explicit InferenceStage(std::span<const std::unique_ptr<Layer>> layers) : layers_(layers) {}

  uint32_t number() const { return layers_.back()->number(); }  // l of H_l, which it gives
  size_t in() const { return layers_.front()->in(); }
  size_t out() const { return layers_.back()->out(); }

  Messages messages() const { return layers_.front()->messages(); }
  size_t message_columns() const { return layers_.front()->message_columns(); }
  void message(kernels::ConstMatrix own, kernels::Matrix out) const { layers_.front()->message(own, out); }
  void infer(const InferenceRows& rows, kernels::Matrix out) const;

 private:
  std::span<const std::unique_ptr<Layer>> layers_;
};

std::vector<InferenceStage> make_stages(std::span<const std::unique_ptr<Layer>> layers);

}  // namespace cgcn
