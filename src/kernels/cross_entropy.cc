#include "kernels/cross_entropy.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"
// After simd-inl.h, which includes highway.h.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

// x - x is zero unless x is NaN or infinite: added to a loss, it keeps what Max and Exp would hide.
float softmax_row(float* logits, size_t classes, uint32_t label, float gradient_scale) {
  const FloatTag d;
  const FloatVector lowest = hn::Set(d, -std::numeric_limits<float>::max());
  FloatVector most = lowest, poison = hn::Zero(d);
  const auto look = [&](FloatVector x, FloatVector counted) HWY_ATTR {
    most = hn::Max(most, counted);
    poison = hn::Add(poison, hn::Sub(x, x));
  };
  for_vectors(
      classes,
      [&](size_t c) HWY_ATTR {
        const FloatVector x = hn::LoadU(d, logits + c);
        look(x, x);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        const FloatVector x = load_first(d, logits + c, rest);
        look(x, hn::IfThenElse(hn::FirstN(d, rest), x, lowest));
      });
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most)), target = logits[label];
  const FloatVector shift = hn::Set(d, largest);
  FloatVector sum = hn::Zero(d);
  for_vectors(
      classes,
      [&](size_t c) HWY_ATTR {
        const FloatVector e = hn::Exp(d, hn::Sub(hn::LoadU(d, logits + c), shift));
        sum = hn::Add(sum, e);
        hn::StoreU(e, d, logits + c);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        const FloatVector e =
            hn::IfThenElseZero(hn::FirstN(d, rest), hn::Exp(d, hn::Sub(load_first(d, logits + c, rest), shift)));
        sum = hn::Add(sum, e);
        store_first(e, d, logits + c, rest);
      });
  const float total = hn::GetLane(hn::SumOfLanes(d, sum));
  const FloatVector factor = hn::Set(d, gradient_scale / total);
  for_vectors(
      classes, [&](size_t c) HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, logits + c), factor), d, logits + c); },
      [&](size_t c, size_t rest)
          HWY_ATTR { store_first(hn::Mul(load_first(d, logits + c, rest), factor), d, logits + c, rest); });
  logits[label] -= gradient_scale;
  return std::log(total) + (largest - target) + hn::GetLane(hn::SumOfLanes(d, poison));
}

// weights: null, or of the bits that are set.
template <bool kWeighted>
float sigmoid_row_of(float* logits, size_t classes, const uint8_t* label_bits, const float* weights,
                     float gradient_scale) {
  const FloatTag d;
  const FloatVector zero = hn::Zero(d), one = hn::Set(d, 1.0f), scale = hn::Set(d, gradient_scale);
  FloatVector loss = zero;
  // With e = exp(-|x|): log(1 + exp(x)) = max(x, 0) + log(1 + e); sigmoid(x) = 1 / (1 + e), or e / (1 + e) for x < 0.
  const auto work = [&](FloatVector x, FloatVector bit, FloatVector weight) HWY_ATTR {
    const FloatVector e = hn::Exp(d, hn::Neg(hn::Abs(x)));
    const FloatVector softplus = hn::Add(hn::Max(x, zero), hn::Log1p(d, e));
    const FloatVector term = hn::Add(hn::NegMulAdd(bit, x, softplus), hn::Sub(x, x));
    const FloatVector sigmoid = hn::Div(hn::IfThenElse(hn::Lt(x, zero), e, one), hn::Add(one, e));
    const FloatVector gradient = hn::Mul(hn::Sub(sigmoid, bit), scale);
    if constexpr (!kWeighted) return std::pair(term, gradient);
    const FloatVector counts = hn::IfThenElse(hn::Gt(bit, zero), weight, one);
    return std::pair(hn::Mul(term, counts), hn::Mul(gradient, counts));
  };
  for_vectors(
      classes,
      [&](size_t c) HWY_ATTR {
        uint8_t bits[16] = {};  // label rows are packed: no byte beyond them may be read
        for (size_t i = 0; i < (hn::Lanes(d) + 7) / 8; ++i) bits[i] = label_bits[c / 8 + i];
        const auto [term, gradient] = work(hn::LoadU(d, logits + c), hn::IfThenElseZero(bits_at(d, bits, c % 8), one),
                                           kWeighted ? hn::LoadU(d, weights + c) : one);
        loss = hn::Add(loss, term);
        hn::StoreU(gradient, d, logits + c);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        uint8_t bits[16] = {};
        for (size_t i = 0; i < (c % 8 + rest + 7) / 8; ++i) bits[i] = label_bits[c / 8 + i];
        const auto [term, gradient] =
            work(load_first(d, logits + c, rest), hn::IfThenElseZero(bits_at(d, bits, c % 8), one),
                 kWeighted ? load_first(d, weights + c, rest) : one);
        loss = hn::Add(loss, hn::IfThenElseZero(hn::FirstN(d, rest), term));
        store_first(gradient, d, logits + c, rest);
      });
  return hn::GetLane(hn::SumOfLanes(d, loss));
}

float sigmoid_row(float* logits, size_t classes, const uint8_t* label_bits, float gradient_scale) {
  return sigmoid_row_of<false>(logits, classes, label_bits, nullptr, gradient_scale);
}
float weighted_sigmoid_row(float* logits, size_t classes, const uint8_t* label_bits, const float* weights,
                           float gradient_scale) {
  return sigmoid_row_of<true>(logits, classes, label_bits, weights, gradient_scale);
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(softmax_row);
HWY_EXPORT(sigmoid_row);
HWY_EXPORT(weighted_sigmoid_row);

float softmax_cross_entropy(float* logits, size_t classes, uint32_t label, float gradient_scale) {
  return HWY_DYNAMIC_DISPATCH(softmax_row)(logits, classes, label, gradient_scale);
}
float sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, float gradient_scale) {
  return HWY_DYNAMIC_DISPATCH(sigmoid_row)(logits, classes, label_bits, gradient_scale);
}
float weighted_sigmoid_cross_entropy(float* logits, size_t classes, const uint8_t* label_bits, const float* weights,
                                     float gradient_scale) {
  return HWY_DYNAMIC_DISPATCH(weighted_sigmoid_row)(logits, classes, label_bits, weights, gradient_scale);
}

}  // namespace cgcn::kernels
#endif
