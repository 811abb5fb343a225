// The plain twin of every kernel: one loop that reads like the formula, sums in double. Tests compare the fast kernels
// with these over odd sizes and strides, and the kernel laboratory times both.
#pragma once

#include "kernels/activation.h"
#include "kernels/adam_step.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/spmm.h"

namespace cgcn::kernels::reference {

void multiply(ConstMatrix a, ConstMatrix b, Matrix c, float keep);
void aggregate(const SparseView& a, ConstMatrix source, RowRange rows, ConstMatrix initial, const DropoutMask& mask,
               Matrix out);
void draw_dropout(const DropoutKey& key, float rate, RowRange rows, RowRange columns, const DropoutMask& mask);
void apply_dropout(const DropoutMask& mask, RowRange rows, ConstMatrix in, Matrix out);
void gather_rows(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out);
void gather_rows(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out);
void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstMatrix residual, Matrix out);
void activate_backward(RowRange rows, ConstMatrix output_gradient, const LayerNorm& norm, Matrix z,
                       float* scale_gradient, float* offset_gradient);
void add_column_sums(RowRange rows, ConstMatrix m, float* sums);
float softmax_cross_entropy(float* logits, size_t classes, uint32_t label, float gradient_scale);
float sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, float gradient_scale);
void adam_step(const AdamCoefficients& c, size_t size, const float* gradient, float* value, float* m, float* v);
double sum_of_squares(size_t size, const float* x);
bool all_finite(size_t size, const float* x);

}  // namespace cgcn::kernels::reference
