// The plain twin of every kernel: one loop that reads like the formula, sums in double. Tests compare the fast kernels
// with these over odd sizes and strides, and the kernel laboratory times both.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "common/random.h"
#include "kernels/activation.h"
#include "kernels/adam_step.h"
#include "kernels/batch_norm.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/spmm.h"

namespace cgcn::kernels::reference {
inline float dropped(const DropoutMask& mask, size_t r, size_t c, double value) {
  return mask.keeps(r, c) ? static_cast<float>(value) * mask.scale : 0.0f;
}

inline float value_of(float value) { return value; }

inline float value_of(uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

template <class T>
inline void gather(const T* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < out.columns; ++c)
      out.row(r)[c] = dropped(mask, r, c, value_of(source[ids[r] * out.columns + c]));
}

inline void multiply(ConstMatrix a, ConstMatrix b, Matrix c, float keep) {
  for (size_t r = 0; r < c.rows; ++r)
    for (size_t j = 0; j < c.columns; ++j) {
      double sum = keep == 0 ? 0 : keep * c.row(r)[j];
      for (size_t k = 0; k < a.columns; ++k) sum += static_cast<double>(a.row(r)[k]) * b.row(k)[j];
      c.row(r)[j] = static_cast<float>(sum);
    }
}

inline void aggregate(const SparseView& a, ConstMatrix source, RowRange rows, Matrix out, ConstMatrix initial = {},
                      const DropoutMask& mask = {}) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < out.columns; ++c) {
      double sum = r < initial.rows ? initial.row(r)[c] : 0;
      for (uint64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i)
        sum += static_cast<double>(a.values[i]) * source.row(a.column_indices[i])[c];
      out.row(r)[c] = dropped(mask, r, c, sum);
    }
}

inline void draw_dropout(const DropoutKey& key, float rate, RowRange rows, RowRange columns, const DropoutMask& mask) {
  const PhiloxKey philox_seed = philox_key(key.seed, Purpose::kDropout);
  const uint32_t threshold = dropout_threshold(rate);
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = columns.begin; c < columns.begin + 8 * DropoutMask::bytes_for(columns.size()); ++c) {
      const size_t place = c % 64, draw = c / 64 * 8 + place % 32 / 4, word = place / 32 * 2 + place % 4 / 2;
      const PhiloxWords words =
          philox({static_cast<uint32_t>(draw) | key.stream << 24, static_cast<uint32_t>(r), key.batch, key.epoch},
                 philox_seed);
      const bool kept = ((words[word] >> (place % 2 * 16)) & 0xFFFF) >= threshold;
      uint8_t& byte = mask.row(r)[c / 8];
      byte = static_cast<uint8_t>((byte & ~(1u << (c % 8))) | (kept ? 1u : 0u) << (c % 8));
    }
}

inline void apply_dropout(const DropoutMask& mask, RowRange rows, ConstMatrix in, Matrix out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < out.columns; ++c) out.row(r)[c] = dropped(mask, r, c, in.row(r)[c]);
}

inline void gather_rows(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Matrix out) {
  gather(source, ids, rows, mask, out);
}
inline void gather_rows(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask,
                        Matrix out) {
  gather(source, ids, rows, mask, out);
}

inline void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstMatrix residual, Matrix out) {
  const auto width = static_cast<double>(z.columns);
  for (size_t r = rows.begin; r < rows.end; ++r) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < z.columns; ++c) mean += z.row(r)[c] / width;
    for (size_t c = 0; c < z.columns; ++c) variance += (z.row(r)[c] - mean) * (z.row(r)[c] - mean) / width;
    const double inverse_deviation = 1 / std::sqrt(variance + kLayerNormEpsilon);
    if (norm.mean != nullptr) {
      norm.mean[r] = static_cast<float>(mean);
      norm.inverse_deviation[r] = static_cast<float>(inverse_deviation);
    }
    for (size_t c = 0; c < z.columns; ++c) {
      double y = z.row(r)[c];
      if (norm.on()) y = (y - mean) * inverse_deviation * norm.scale[c] + norm.offset[c];
      out.row(r)[c] = static_cast<float>(std::max(0.0, y) + (residual.rows > 0 ? residual.row(r)[c] : 0));
    }
  }
}

inline void add_column_squares(RowRange rows, ConstMatrix m, const float* mean, float* sums) {
  for (size_t c = 0; c < m.columns; ++c) {
    double sum = sums[c];
    for (size_t r = rows.begin; r < rows.end; ++r) sum += std::pow(static_cast<double>(m.row(r)[c]) - mean[c], 2);
    sums[c] = static_cast<float>(sum);
  }
}

// x̂ of a value, and the gradient that ReLU lets through there.
inline std::pair<double, double> normalised(const BatchNorm& norm, size_t c, double z, double gradient) {
  const double x = (z - norm.mean[c]) * norm.inverse_deviation[c];
  return {x, x * norm.scale[c] + norm.offset[c] > 0 ? gradient : 0};
}

inline void normalise_columns(RowRange rows, ConstMatrix z, const BatchNorm& norm, ConstMatrix residual, Matrix out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < z.columns; ++c) {
      const double y = normalised(norm, c, z.row(r)[c], 0).first * norm.scale[c] + norm.offset[c];
      out.row(r)[c] = static_cast<float>(std::max(0.0, y) + (residual.rows > 0 ? residual.row(r)[c] : 0));
    }
}

inline void add_norm_gradients(RowRange rows, ConstMatrix output_gradient, const BatchNorm& norm, ConstMatrix z,
                               float* scale_gradient, float* offset_gradient) {
  for (size_t c = 0; c < z.columns; ++c) {
    double scale = scale_gradient[c], offset = offset_gradient[c];
    for (size_t r = rows.begin; r < rows.end; ++r) {
      const auto [x, g] = normalised(norm, c, z.row(r)[c], output_gradient.row(r)[c]);
      scale += g * x;
      offset += g;
    }
    scale_gradient[c] = static_cast<float>(scale);
    offset_gradient[c] = static_cast<float>(offset);
  }
}

inline void normalise_columns_backward(RowRange rows, ConstMatrix output_gradient, const BatchNorm& norm,
                                       const float* scale_gradient, const float* offset_gradient, Matrix z) {
  const auto n = static_cast<double>(z.rows);
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < z.columns; ++c) {
      const auto [x, g] = normalised(norm, c, z.row(r)[c], output_gradient.row(r)[c]);
      z.row(r)[c] = static_cast<float>((g - offset_gradient[c] / n - x * scale_gradient[c] / n) * norm.scale[c] *
                                       norm.inverse_deviation[c]);
    }
}

inline void activate_backward(RowRange rows, ConstMatrix output_gradient, const LayerNorm& norm, Matrix z,
                              float* scale_gradient, float* offset_gradient) {
  const auto width = static_cast<double>(z.columns);
  std::vector<double> normalised(z.columns), gradient(z.columns);
  for (size_t r = rows.begin; r < rows.end; ++r) {
    if (!norm.on()) {
      for (size_t c = 0; c < z.columns; ++c) z.row(r)[c] = z.row(r)[c] > 0 ? output_gradient.row(r)[c] : 0;
      continue;
    }
    double mean_gradient = 0, mean_product = 0;
    for (size_t c = 0; c < z.columns; ++c) {
      normalised[c] = (static_cast<double>(z.row(r)[c]) - norm.mean[r]) * norm.inverse_deviation[r];
      const double y = normalised[c] * norm.scale[c] + norm.offset[c];
      const double g = y > 0 ? output_gradient.row(r)[c] : 0;
      scale_gradient[c] += static_cast<float>(g * normalised[c]);
      offset_gradient[c] += static_cast<float>(g);
      gradient[c] = g * norm.scale[c];
      mean_gradient += gradient[c] / width;
      mean_product += gradient[c] * normalised[c] / width;
    }
    for (size_t c = 0; c < z.columns; ++c)
      z.row(r)[c] =
          static_cast<float>(norm.inverse_deviation[r] * (gradient[c] - mean_gradient - normalised[c] * mean_product));
  }
}

inline void add_column_sums(RowRange rows, ConstMatrix m, float* sums) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t c = 0; c < m.columns; ++c) sums[c] += m.row(r)[c];
}

inline float softmax_cross_entropy(float* logits, size_t classes, uint32_t label, float gradient_scale) {
  const double largest = *std::max_element(logits, logits + classes), target = logits[label];
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
  for (size_t c = 0; c < classes; ++c)
    logits[c] = static_cast<float>(gradient_scale * (std::exp(logits[c] - largest) / sum - (c == label ? 1.0 : 0.0)));
  return static_cast<float>(std::log(sum) + largest - target);
}

inline float sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, float gradient_scale) {
  double loss = 0;
  for (size_t c = 0; c < classes; ++c) {
    const double logit = logits[c], bit = (label_bits[c / 8] >> (c % 8)) & 1;
    loss += std::max(logit, 0.0) + std::log1p(std::exp(-std::abs(logit))) - bit * logit;
    logits[c] = static_cast<float>(gradient_scale * (1 / (1 + std::exp(-logit)) - bit));
  }
  return static_cast<float>(loss);
}

inline float weighted_sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits,
                                            const float* weights, float gradient_scale) {
  double loss = 0;
  for (size_t c = 0; c < classes; ++c) {
    const double logit = logits[c], bit = (label_bits[c / 8] >> (c % 8)) & 1, weight = bit > 0 ? weights[c] : 1.0;
    loss += weight * (std::max(logit, 0.0) + std::log1p(std::exp(-std::abs(logit))) - bit * logit);
    logits[c] = static_cast<float>(weight * gradient_scale * (1 / (1 + std::exp(-logit)) - bit));
  }
  return static_cast<float>(loss);
}

inline void adam_step(const AdamCoefficients& k, size_t size, const float* gradient, float* value, float* m, float* v) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] * k.gradient_scale + k.weight_decay * value[i];
    m[i] = k.beta1 * m[i] + (1 - k.beta1) * g;
    v[i] = k.beta2 * v[i] + (1 - k.beta2) * g * g;
    value[i] = k.value_scale * value[i] - k.step_size * m[i] / (k.second_scale * std::sqrt(v[i]) + k.epsilon);
  }
}

inline double sum_of_squares(size_t size, const float* x) {
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

inline bool all_finite(size_t size, const float* x) {
  return std::all_of(x, x + size, [](float value) { return std::isfinite(value); });
}

}  // namespace cgcn::kernels::reference
