// Cross-entropy of a row of logits and its gradient, in place: softmax for one class per node, sigmoid for any number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cgcn::kernels {

// Returns -log softmax(logits)[label]; logits become gradient_scale · (softmax(logits) - onehot(label)).
float softmax_cross_entropy(float* logits, size_t classes, uint32_t label, float gradient_scale);

// Returns Σ_c log(1 + exp(logit)) - bit · logit; logits become gradient_scale · (sigmoid(logit) - bit).
// Bit c of the labels is at byte c / 8, least significant first.
float sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, float gradient_scale);

// The same if a bit that is set counts weights[c] times, one that is not once.
float weighted_sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, const float* weights,
                                     float gradient_scale);

}  // namespace cgcn::kernels
