#include "nn/inference_stage.h"

#include <cstring>

#include "kernels/dropout.h"
#include "kernels/row_buffer.h"

namespace cgcn {

using kernels::bytes_of;
using kernels::ConstMatrix;
using kernels::ConstRows;
using kernels::copy_rows;
using kernels::Matrix;
using kernels::Precision;
using kernels::RowBuffer;
using kernels::Rows;

namespace {

// Floats of a row in bfloat16 lie in twice as many columns, whose bytes they take.
ConstMatrix take_floats(ConstRows rows, Buffer<float>& memory) {
  if (!rows.is_half()) return rows.floats();
  const size_t columns = rows.columns * sizeof(BFloat16) / sizeof(float);
  memory = Buffer<float>(rows.rows * columns);
  const Matrix out(memory.data(), rows.rows, columns);
  for (size_t r = 0; r < out.rows; ++r) std::memcpy(out.row(r), rows.halves().row(r), columns * sizeof(float));
  return out;
}

void put_floats(ConstMatrix floats, Rows out) {
  for (size_t r = 0; r < out.rows; ++r)
    std::memcpy(out.rows_from(r, r + 1).data, floats.row(r), floats.columns * sizeof(float));
}

}  // namespace

InferenceStage InferenceStage::ending() const {
  InferenceStage stage = *this;
  stage.is_ending_ = true;
  return stage;
}

size_t InferenceStage::packed_bytes() const {
  size_t elements = 0;
  for (const auto& layer : layers_) elements += layer->packed_elements();
  return precision_ == Precision::kBFloat16 ? elements * sizeof(BFloat16) : 0;
}

void InferenceStage::pack_weights() {
  if (precision_ == Precision::kFloat32) return;
  auto packed = std::make_shared<Buffer<BFloat16>>(packed_bytes() / sizeof(BFloat16));
  BFloat16* to = packed->data();
  for (const auto& layer : layers_) {
    layer->pack_weights(to);
    to += layer->packed_elements();
  }
  packed_ = std::move(packed);
}

// In addition to H_l. The head is the last to take it; H_0 itself is no layer's row that it takes.
size_t InferenceStage::carried_above(uint32_t layer) const {
  if (layer >= top_.number()) return 0;
  return initial_ + (layer > 0 ? head_columns() : 0);
}

size_t InferenceStage::head_columns() const { return top_.carried_columns() * sizeof(float) / bytes_of(precision_); }

void InferenceStage::message(ConstRows own, Rows messages, Rows kept) const {
  const ConstRows rows = own.columns_from(0, own_columns());
  if (copies_messages()) return copy_rows(rows, messages);
  layers_.front()->message(rows, packed_ ? packed_->data() : nullptr, messages, kept);
}

void InferenceStage::infer(const InferenceRows& rows, Rows out) const {
  InferenceRows taken = rows;
  Buffer<float> carried;
  if (carried_in() > 0 && !narrows()) {
    taken.own = rows.own.columns_from(0, own_columns());
    taken.initial = rows.own.columns_from(own_columns(), own_columns() + initial_);
    if (in() > own_columns() + initial_)
      taken.carried = take_floats(rows.own.columns_from(own_columns() + initial_, in()), carried);
  }
  infer_layers(taken, out.columns_from(0, layers_.back()->out()));
  if (carried_out() > 0) carry_on(taken, out);
}

void InferenceStage::infer_layers(InferenceRows rows, Rows out) const {
  RowBuffer below, above;
  const BFloat16* packed = packed_ ? packed_->data() : nullptr;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    if (!last) above = RowBuffer(out.rows, layers_[i]->out(), precision_);
    const Rows to = last ? out : above.rows();
    rows.packed = packed != nullptr && layers_[i]->packed_elements() > 0 ? packed : nullptr;
    layers_[i]->infer(rows, to);
    if (packed != nullptr) packed += layers_[i]->packed_elements();
    std::swap(below, above);
    rows.own = to;
  }
}

void InferenceStage::carry_on(const InferenceRows& rows, Rows out) const {
  const size_t columns = layers_.back()->out();
  const Rows given = out.columns_from(0, columns);
  copy_rows(number() == 0 ? ConstRows(given) : rows.initial, out.columns_from(columns, columns + initial_));
  if (number() == 0 || top_.carried_columns() == 0) return;
  const Rows place = out.columns_from(columns + initial_, this->out());
  if (!place.is_half()) return top_.carry(number(), given, rows.carried, place.floats());
  Buffer<float> memory(out.rows * top_.carried_columns());
  const Matrix after(memory.data(), out.rows, top_.carried_columns());
  top_.carry(number(), given, rows.carried, after);
  put_floats(after, place);
}

std::vector<InferenceStage> make_stages(std::span<const std::unique_ptr<Layer>> layers, size_t initial,
                                        Precision precision) {
  std::vector<InferenceStage> stages;
  for (size_t begin = 0, end = 1; begin < layers.size(); begin = end++) {
    while (end < layers.size() && layers[end]->messages() == Messages::kNone) ++end;
    stages.emplace_back(layers, begin, end, initial, precision);
  }
  return stages;
}

}  // namespace cgcn
