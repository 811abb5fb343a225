#include "nn/inference_stage.h"

#include <algorithm>

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;

namespace {

void copy_columns(ConstMatrix from, Matrix to) {
  for (size_t r = 0; r < to.rows; ++r) std::copy_n(from.row(r), to.columns, to.row(r));
}

}  // namespace

InferenceStage InferenceStage::ending() const {
  InferenceStage stage = *this;
  stage.is_ending_ = true;
  return stage;
}

// In addition to H_l. The head is the last to take it; H_0 itself is no layer's row that it takes.
size_t InferenceStage::carried_above(uint32_t layer) const {
  if (layer >= top_.number()) return 0;
  return initial_ + (layer > 0 ? top_.carried_columns() : 0);
}

void InferenceStage::message(ConstMatrix own, Matrix messages, Matrix kept) const {
  const ConstMatrix rows = own.columns_from(0, own_columns());
  if (copies_messages()) return copy_columns(rows, messages);
  layers_.front()->message(rows, messages, kept);
}

void InferenceStage::infer(const InferenceRows& rows, Matrix out) const {
  InferenceRows next = rows;
  if (carried_in() > 0 && !narrows()) {
    next.own = rows.own.columns_from(0, own_columns());
    next.initial = rows.own.columns_from(own_columns(), own_columns() + initial_);
    if (in() > own_columns() + initial_) next.carried = rows.own.columns_from(own_columns() + initial_, in());
  }
  const size_t columns = layers_.back()->out();
  const Matrix given = out.columns_from(0, columns);
  Buffer<float> below, above;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    above = Buffer<float>(last ? 0 : out.rows * layers_[i]->out());
    const Matrix to = last ? given : Matrix(above.data(), out.rows, layers_[i]->out());
    layers_[i]->infer(next, to);
    std::swap(below, above);
    next.own = to;
  }
  if (carried_out() == 0) return;
  copy_columns(number() == 0 ? ConstMatrix(given) : next.initial, out.columns_from(columns, columns + initial_));
  if (number() > 0 && top_.carried_columns() > 0)
    top_.carry(number(), given, next.carried, out.columns_from(columns + initial_, this->out()));
}

std::vector<InferenceStage> make_stages(std::span<const std::unique_ptr<Layer>> layers, size_t initial) {
  std::vector<InferenceStage> stages;
  for (size_t begin = 0, end = 1; begin < layers.size(); begin = end++) {
    while (end < layers.size() && layers[end]->messages() == Messages::kNone) ++end;
    stages.emplace_back(layers, begin, end, initial);
  }
  return stages;
}

}  // namespace cgcn
