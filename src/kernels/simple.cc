#include "kernels/reference.h"

namespace cgcn::kernels {

void aggregate(const SparseView& a, ConstMatrix source, RowRange rows, ConstMatrix initial, const DropoutMask& mask,
               Matrix out) {
  reference::aggregate(a, source, rows, initial, mask, out);
}
void draw_dropout(const DropoutKey& key, float rate, RowRange rows, size_t columns, const DropoutMask& mask) {
  reference::draw_dropout(key, rate, rows, columns, mask);
}
void apply_dropout(const DropoutMask& mask, RowRange rows, ConstMatrix in, Matrix out) {
  reference::apply_dropout(mask, rows, in, out);
}
void gather_rows(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  reference::gather_rows(source, ids, rows, mask, out);
}
void gather_rows(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  reference::gather_rows(source, ids, rows, mask, out);
}
void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstMatrix residual, Matrix out) {
  reference::activate(rows, z, norm, residual, out);
}
void activate_backward(RowRange rows, ConstMatrix output_gradient, const LayerNorm& norm, Matrix z,
                       float* scale_gradient, float* offset_gradient) {
  reference::activate_backward(rows, output_gradient, norm, z, scale_gradient, offset_gradient);
}
void add_column_sums(RowRange rows, ConstMatrix m, float* sums) { reference::add_column_sums(rows, m, sums); }
float softmax_cross_entropy(float* logits, size_t classes, uint32_t label, float gradient_scale) {
  return reference::softmax_cross_entropy(logits, classes, label, gradient_scale);
}
float sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, float gradient_scale) {
  return reference::sigmoid_cross_entropy(logits, classes, label_bits, gradient_scale);
}
void adam_step(const AdamCoefficients& c, size_t size, const float* gradient, float* value, float* m, float* v) {
  reference::adam_step(c, size, gradient, value, m, v);
}
double sum_of_squares(size_t size, const float* x) { return reference::sum_of_squares(size, x); }
bool all_finite(size_t size, const float* x) { return reference::all_finite(size, x); }

}  // namespace cgcn::kernels
