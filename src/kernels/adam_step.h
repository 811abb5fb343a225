// One step of Adam (Kingma and Ba, algorithm 1) over a run of parameters.
#pragma once

#include <cstddef>

namespace cgcn::kernels {

struct AdamCoefficients {
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0;    // added to the gradient: L2
  float value_scale = 1;     // multiplies the value first: decoupled decay (AdamW)
  float gradient_scale = 1;  // multiplies the gradient first: clipping
  float step_size = 0;       // learning rate / (1 - β₁ᵗ)
  float second_scale = 1;    // 1 / sqrt(1 - β₂ᵗ)
};

// m = β₁m + (1-β₁)g; v = β₂v + (1-β₂)g²; value = value_scale·value - step_size · m / (second_scale·√v + ε).
// Numbers below the smallest normal float are zero (tiny_numbers.h).
void adam_step(const AdamCoefficients& c, size_t size, const float* gradient, float* value, float* m, float* v);

// Σ x² of a run, in double.
double sum_of_squares(size_t size, const float* x);
// Whether a run has a NaN or an infinity.
bool all_finite(size_t size, const float* x);

}  // namespace cgcn::kernels
