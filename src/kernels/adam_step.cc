#include "kernels/adam_step.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adam_step.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"
#include "kernels/tiny_numbers.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

void adam_run(const AdamCoefficients& k, size_t size, const float* gradient, float* value, float* m, float* v) {
  const FloatTag d;
  const FloatVector beta1 = hn::Set(d, k.beta1), beta2 = hn::Set(d, k.beta2), epsilon = hn::Set(d, k.epsilon);
  const FloatVector rest1 = hn::Set(d, 1 - k.beta1), rest2 = hn::Set(d, 1 - k.beta2), step = hn::Set(d, k.step_size);
  const FloatVector decay = hn::Set(d, k.weight_decay), gradient_scale = hn::Set(d, k.gradient_scale);
  const FloatVector second_scale = hn::Set(d, k.second_scale), value_scale = hn::Set(d, k.value_scale);
  const auto update = [&](FloatVector raw, FloatVector& x, FloatVector& first, FloatVector& second) HWY_ATTR {
    const FloatVector g = hn::MulAdd(decay, x, hn::Mul(raw, gradient_scale));
    first = hn::MulAdd(beta1, first, hn::Mul(rest1, g));
    second = hn::MulAdd(beta2, second, hn::Mul(rest2, hn::Mul(g, g)));
    const FloatVector deviation = hn::MulAdd(hn::Sqrt(second), second_scale, epsilon);
    x = hn::Sub(hn::Mul(value_scale, x), hn::Div(hn::Mul(step, first), deviation));
  };
  for_vectors(
      size,
      [&](size_t i) HWY_ATTR {
        FloatVector x = hn::LoadU(d, value + i), first = hn::LoadU(d, m + i), second = hn::LoadU(d, v + i);
        update(hn::LoadU(d, gradient + i), x, first, second);
        hn::StoreU(first, d, m + i);
        hn::StoreU(second, d, v + i);
        hn::StoreU(x, d, value + i);
      },
      [&](size_t i, size_t rest) HWY_ATTR {
        FloatVector x = load_first(d, value + i, rest), first = load_first(d, m + i, rest);
        FloatVector second = load_first(d, v + i, rest);
        update(load_first(d, gradient + i, rest), x, first, second);
        store_first(first, d, m + i, rest);
        store_first(second, d, v + i, rest);
        store_first(x, d, value + i, rest);
      });
}

double sum_squares(size_t size, const float* x) {
  // Floats over short stretches, doubles over the whole.
  constexpr size_t kStretch = 1024;
  const FloatTag d;
  double total = 0;
  for (size_t begin = 0; begin < size; begin += kStretch) {
    FloatVector sum = hn::Zero(d);
    const auto add = [&](FloatVector at) HWY_ATTR { sum = hn::MulAdd(at, at, sum); };
    for_vectors(
        size - begin < kStretch ? size - begin : kStretch, [&](size_t i) HWY_ATTR { add(hn::LoadU(d, x + begin + i)); },
        [&](size_t i, size_t rest) HWY_ATTR { add(load_first(d, x + begin + i, rest)); });
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  return total;
}

bool run_is_finite(size_t size, const float* x) {
  const FloatTag d;
  FloatVector poison = hn::Zero(d);  // x - x is zero unless x is NaN or infinite
  const auto add = [&](FloatVector at) HWY_ATTR { poison = hn::Add(poison, hn::Sub(at, at)); };
  for_vectors(
      size, [&](size_t i) HWY_ATTR { add(hn::LoadU(d, x + i)); },
      [&](size_t i, size_t rest) HWY_ATTR { add(load_first(d, x + i, rest)); });
  return hn::GetLane(hn::SumOfLanes(d, poison)) == 0;
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(adam_run);
HWY_EXPORT(sum_squares);
HWY_EXPORT(run_is_finite);

void adam_step(const AdamCoefficients& c, size_t size, const float* gradient, float* value, float* m, float* v) {
  const FlushTinyNumbers flush;
  HWY_DYNAMIC_DISPATCH(adam_run)(c, size, gradient, value, m, v);
}
double sum_of_squares(size_t size, const float* x) { return HWY_DYNAMIC_DISPATCH(sum_squares)(size, x); }
bool all_finite(size_t size, const float* x) { return HWY_DYNAMIC_DISPATCH(run_is_finite)(size, x); }

}  // namespace cgcn::kernels
#endif
