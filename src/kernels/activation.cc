#include "kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

struct Moments {
  float mean, inverse_deviation;
};

// Σ term(row), in four sums at a time, since an addition takes four cycles.
template <class Term>
HWY_INLINE float sum_over(const float* row, size_t width, Term&& term) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  FloatVector s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) {
    s0 = hn::Add(s0, term(hn::LoadU(d, row + c)));
    s1 = hn::Add(s1, term(hn::LoadU(d, row + c + lanes)));
    s2 = hn::Add(s2, term(hn::LoadU(d, row + c + 2 * lanes)));
    s3 = hn::Add(s3, term(hn::LoadU(d, row + c + 3 * lanes)));
  }
  for_vectors(
      width - c, [&](size_t i) HWY_ATTR { s0 = hn::Add(s0, term(hn::LoadU(d, row + c + i))); },
      [&](size_t i, size_t rest) HWY_ATTR {
        s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, rest), term(load_first(d, row + c + i, rest))));
      });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// Mean first, then the squared distances from it: the row is in the first-level cache by then, and nothing cancels.
HWY_INLINE Moments row_moments(const float* z, size_t width) {
  const FloatTag d;
  const float mean = sum_over(z, width, [](FloatVector v) HWY_ATTR { return v; }) / static_cast<float>(width);
  const FloatVector means = hn::Set(d, mean);
  const float squares = sum_over(z, width, [&](FloatVector v) HWY_ATTR {
    const FloatVector distance = hn::Sub(v, means);
    return hn::Mul(distance, distance);
  });
  const float variance = squares / static_cast<float>(width);
  return {mean, 1.0f / __builtin_sqrtf(variance + kLayerNormEpsilon)};
}

HWY_INLINE void activate_row(const float* z, const LayerNorm& norm, Moments moments, const float* residual,
                             size_t width, float* out) {
  const FloatTag d;
  const FloatVector mean = hn::Set(d, moments.mean), inverse = hn::Set(d, moments.inverse_deviation);
  const auto finish = [&](FloatVector y, FloatVector scale, FloatVector offset, FloatVector added) HWY_ATTR {
    if (norm.on()) y = hn::MulAdd(hn::Mul(hn::Sub(y, mean), inverse), scale, offset);
    return hn::Add(hn::Max(y, hn::Zero(d)), added);
  };
  const auto vector = [&](const float* from, size_t c)
                          HWY_ATTR { return from == nullptr ? hn::Zero(d) : hn::LoadU(d, from + c); };
  const auto first = [&](const float* from, size_t c, size_t rest)
                         HWY_ATTR { return from == nullptr ? hn::Zero(d) : load_first(d, from + c, rest); };
  for_vectors(
      width,
      [&](size_t c) HWY_ATTR {
        hn::StoreU(finish(vector(z, c), vector(norm.scale, c), vector(norm.offset, c), vector(residual, c)), d,
                   out + c);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        store_first(finish(first(z, c, rest), first(norm.scale, c, rest), first(norm.offset, c, rest),
                           first(residual, c, rest)),
                    d, out + c, rest);
      });
}

void activate_rows(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstMatrix residual, Matrix out) {
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const Moments moments = norm.on() ? row_moments(z.row(r), z.columns) : Moments{};
    if (norm.mean != nullptr) {
      norm.mean[r] = moments.mean;
      norm.inverse_deviation[r] = moments.inverse_deviation;
    }
    activate_row(z.row(r), norm, moments, residual.rows > 0 ? residual.row(r) : nullptr, z.columns, out.row(r));
  }
}

HWY_INLINE void relu_backward_row(const float* gradient, size_t width, float* z) {
  const FloatTag d;
  const auto pass = [&](FloatVector at, FloatVector g)
                        HWY_ATTR { return hn::IfThenElseZero(hn::Gt(at, hn::Zero(d)), g); };
  for_vectors(
      width, [&](size_t c) HWY_ATTR { hn::StoreU(pass(hn::LoadU(d, z + c), hn::LoadU(d, gradient + c)), d, z + c); },
      [&](size_t c, size_t rest) HWY_ATTR {
        store_first(pass(load_first(d, z + c, rest), load_first(d, gradient + c, rest)), d, z + c, rest);
      });
}

// With x̂ the normalised row, g the gradient that ReLU lets through and s the scale:
// dz = (g·s - mean(g·s) - x̂·mean(g·s·x̂)) / deviation.
HWY_INLINE void norm_backward_row(const float* gradient, const LayerNorm& norm, Moments moments, size_t width, float* z,
                                  float* scale_gradient, float* offset_gradient) {
  const FloatTag d;
  const FloatVector mean = hn::Set(d, moments.mean), inverse = hn::Set(d, moments.inverse_deviation);
  FloatVector sum = hn::Zero(d), product = hn::Zero(d);
  const auto normalised = [&](FloatVector at) HWY_ATTR { return hn::Mul(hn::Sub(at, mean), inverse); };
  const auto through = [&](FloatVector x, FloatVector scale, FloatVector offset, FloatVector g) HWY_ATTR {
    return hn::IfThenElseZero(hn::Gt(hn::MulAdd(x, scale, offset), hn::Zero(d)), g);
  };
  for_vectors(
      width,
      [&](size_t c) HWY_ATTR {
        const FloatVector x = normalised(hn::LoadU(d, z + c)), scale = hn::LoadU(d, norm.scale + c);
        const FloatVector g = through(x, scale, hn::LoadU(d, norm.offset + c), hn::LoadU(d, gradient + c));
        hn::StoreU(hn::MulAdd(g, x, hn::LoadU(d, scale_gradient + c)), d, scale_gradient + c);
        hn::StoreU(hn::Add(g, hn::LoadU(d, offset_gradient + c)), d, offset_gradient + c);
        const FloatVector scaled = hn::Mul(g, scale);
        sum = hn::Add(sum, scaled);
        product = hn::MulAdd(scaled, x, product);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        // Lanes beyond the row have g = 0, so that they add nothing.
        const FloatVector x = normalised(load_first(d, z + c, rest)), scale = load_first(d, norm.scale + c, rest);
        const FloatVector g =
            through(x, scale, load_first(d, norm.offset + c, rest), load_first(d, gradient + c, rest));
        store_first(hn::MulAdd(g, x, load_first(d, scale_gradient + c, rest)), d, scale_gradient + c, rest);
        store_first(hn::Add(g, load_first(d, offset_gradient + c, rest)), d, offset_gradient + c, rest);
        const FloatVector scaled = hn::Mul(g, scale);
        sum = hn::Add(sum, scaled);
        product = hn::MulAdd(scaled, x, product);
      });
  const FloatVector share = hn::Set(d, 1.0f / static_cast<float>(width));
  const FloatVector mean_sum = hn::Mul(hn::SumOfLanes(d, sum), share);
  const FloatVector mean_product = hn::Mul(hn::SumOfLanes(d, product), share);
  const auto back = [&](FloatVector x, FloatVector scale, FloatVector offset, FloatVector g) HWY_ATTR {
    const FloatVector centred = hn::MulSub(through(x, scale, offset, g), scale, mean_sum);
    return hn::Mul(hn::NegMulAdd(x, mean_product, centred), inverse);
  };
  for_vectors(
      width,
      [&](size_t c) HWY_ATTR {
        hn::StoreU(back(normalised(hn::LoadU(d, z + c)), hn::LoadU(d, norm.scale + c), hn::LoadU(d, norm.offset + c),
                        hn::LoadU(d, gradient + c)),
                   d, z + c);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        store_first(back(normalised(load_first(d, z + c, rest)), load_first(d, norm.scale + c, rest),
                         load_first(d, norm.offset + c, rest), load_first(d, gradient + c, rest)),
                    d, z + c, rest);
      });
}

void activate_backward_rows(RowRange rows, ConstMatrix output_gradient, const LayerNorm& norm, Matrix z,
                            float* scale_gradient, float* offset_gradient) {
  for (size_t r = rows.begin; r < rows.end; ++r) {
    if (norm.on())
      norm_backward_row(output_gradient.row(r), norm, {norm.mean[r], norm.inverse_deviation[r]}, z.columns, z.row(r),
                        scale_gradient, offset_gradient);
    else
      relu_backward_row(output_gradient.row(r), z.columns, z.row(r));
  }
}

void sum_columns(RowRange rows, ConstMatrix m, float* sums) {
  const FloatTag d;
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const float* row = m.row(r);
    for_vectors(
        m.columns,
        [&](size_t c) HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, sums + c), hn::LoadU(d, row + c)), d, sums + c); },
        [&](size_t c, size_t rest) HWY_ATTR {
          store_first(hn::Add(load_first(d, sums + c, rest), load_first(d, row + c, rest)), d, sums + c, rest);
        });
  }
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(activate_rows);
HWY_EXPORT(activate_backward_rows);
HWY_EXPORT(sum_columns);

void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstMatrix residual, Matrix out) {
  HWY_DYNAMIC_DISPATCH(activate_rows)(rows, z, norm, residual, out);
}
void activate_backward(RowRange rows, ConstMatrix output_gradient, const LayerNorm& norm, Matrix z,
                       float* scale_gradient, float* offset_gradient) {
  HWY_DYNAMIC_DISPATCH(activate_backward_rows)(rows, output_gradient, norm, z, scale_gradient, offset_gradient);
}
void add_column_sums(RowRange rows, ConstMatrix m, float* sums) { HWY_DYNAMIC_DISPATCH(sum_columns)(rows, m, sums); }

}  // namespace cgcn::kernels
#endif
