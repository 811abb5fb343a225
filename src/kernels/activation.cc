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

// T: of the residual, and of out.
template <class T>
HWY_INLINE void activate_row(const float* z, const LayerNorm& norm, Moments moments, const T* residual, size_t width,
                             T* out) {
  const FloatTag d;
  const FloatVector mean = hn::Set(d, moments.mean), inverse = hn::Set(d, moments.inverse_deviation);
  const auto finish = [&](FloatVector y, FloatVector scale, FloatVector offset, FloatVector added) HWY_ATTR {
    if (norm.on()) y = hn::MulAdd(hn::Mul(hn::Sub(y, mean), inverse), scale, offset);
    return hn::Add(hn::Max(y, hn::Zero(d)), added);
  };
  const auto vector = [&](const auto* from, size_t c)
                          HWY_ATTR { return from == nullptr ? hn::Zero(d) : load_values(d, from + c); };
  const auto first = [&](const auto* from, size_t c, size_t rest)
                         HWY_ATTR { return from == nullptr ? hn::Zero(d) : load_values(d, from + c, rest); };
  for_vectors(
      width,
      [&](size_t c) HWY_ATTR {
        store_values(finish(vector(z, c), vector(norm.scale, c), vector(norm.offset, c), vector(residual, c)), d,
                     out + c);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        store_values(finish(first(z, c, rest), first(norm.scale, c, rest), first(norm.offset, c, rest),
                            first(residual, c, rest)),
                     d, out + c, rest);
      });
}

template <class T>
void activate_matrix(RowRange rows, ConstMatrix z, const LayerNorm& norm, MatrixView<const T> residual,
                     MatrixView<T> out) {
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const Moments moments = norm.on() ? row_moments(z.row(r), z.columns) : Moments{};
    if (norm.mean != nullptr) {
      norm.mean[r] = moments.mean;
      norm.inverse_deviation[r] = moments.inverse_deviation;
    }
    activate_row<T>(z.row(r), norm, moments, residual.rows > 0 ? residual.row(r) : nullptr, z.columns, out.row(r));
  }
}

void activate_rows(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstRows residual, Rows out) {
  if (out.is_half())
    activate_matrix<BFloat16>(rows, z, norm, residual.halves(), out.halves());
  else
    activate_matrix<float>(rows, z, norm, residual.floats(), out.floats());
}

// T: of both gradients. dz may begin where z begins: what is written lies behind what is still to be read.
template <class T>
HWY_INLINE void relu_backward_row(const T* gradient, size_t width, const float* z, T* dz) {
  const FloatTag d;
  const auto pass = [&](FloatVector at, FloatVector g)
                        HWY_ATTR { return hn::IfThenElseZero(hn::Gt(at, hn::Zero(d)), g); };
  for_vectors(
      width,
      [&](size_t c) HWY_ATTR { store_values(pass(hn::LoadU(d, z + c), load_values(d, gradient + c)), d, dz + c); },
      [&](size_t c, size_t rest) HWY_ATTR {
        store_values(pass(load_first(d, z + c, rest), load_values(d, gradient + c, rest)), d, dz + c, rest);
      });
}

// With x̂ the normalised row, g the gradient that ReLU lets through and s the scale:
// dz = (g·s - mean(g·s) - x̂·mean(g·s·x̂)) / deviation.
template <class T>
HWY_INLINE void norm_backward_row(const T* gradient, const LayerNorm& norm, Moments moments, size_t width,
                                  const float* z, T* dz, float* scale_gradient, float* offset_gradient) {
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
        const FloatVector g = through(x, scale, hn::LoadU(d, norm.offset + c), load_values(d, gradient + c));
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
            through(x, scale, load_first(d, norm.offset + c, rest), load_values(d, gradient + c, rest));
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
        store_values(back(normalised(hn::LoadU(d, z + c)), hn::LoadU(d, norm.scale + c), hn::LoadU(d, norm.offset + c),
                          load_values(d, gradient + c)),
                     d, dz + c);
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        store_values(back(normalised(load_first(d, z + c, rest)), load_first(d, norm.scale + c, rest),
                          load_first(d, norm.offset + c, rest), load_values(d, gradient + c, rest)),
                     d, dz + c, rest);
      });
}

template <class T>
void activate_backward_matrix(RowRange rows, MatrixView<const T> output_gradient, const LayerNorm& norm, ConstMatrix z,
                              MatrixView<T> dz, float* scale_gradient, float* offset_gradient) {
  for (size_t r = rows.begin; r < rows.end; ++r) {
    if (norm.on())
      norm_backward_row<T>(output_gradient.row(r), norm, {norm.mean[r], norm.inverse_deviation[r]}, z.columns, z.row(r),
                           dz.row(r), scale_gradient, offset_gradient);
    else
      relu_backward_row<T>(output_gradient.row(r), z.columns, z.row(r), dz.row(r));
  }
}

void activate_backward_rows(RowRange rows, ConstRows output_gradient, const LayerNorm& norm, ConstMatrix z, Rows dz,
                            float* scale_gradient, float* offset_gradient) {
  if (dz.is_half())
    activate_backward_matrix<BFloat16>(rows, output_gradient.halves(), norm, z, dz.halves(), scale_gradient,
                                       offset_gradient);
  else
    activate_backward_matrix<float>(rows, output_gradient.floats(), norm, z, dz.floats(), scale_gradient,
                                    offset_gradient);
}

template <class T>
void sum_matrix_columns(RowRange rows, MatrixView<const T> m, float* sums) {
  const FloatTag d;
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const T* row = m.row(r);
    for_vectors(
        m.columns,
        [&](size_t c) HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, sums + c), load_values(d, row + c)), d, sums + c); },
        [&](size_t c, size_t rest) HWY_ATTR {
          store_first(hn::Add(load_first(d, sums + c, rest), load_values(d, row + c, rest)), d, sums + c, rest);
        });
  }
}

void sum_columns(RowRange rows, ConstRows m, float* sums) {
  if (m.is_half())
    sum_matrix_columns(rows, m.halves(), sums);
  else
    sum_matrix_columns(rows, m.floats(), sums);
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(activate_rows);
HWY_EXPORT(activate_backward_rows);
HWY_EXPORT(sum_columns);

void activate(RowRange rows, ConstMatrix z, const LayerNorm& norm, ConstRows residual, Rows out) {
  HWY_DYNAMIC_DISPATCH(activate_rows)(rows, z, norm, residual, out);
}
void activate_backward(RowRange rows, ConstRows output_gradient, const LayerNorm& norm, ConstMatrix z, Rows dz,
                       float* scale_gradient, float* offset_gradient) {
  HWY_DYNAMIC_DISPATCH(activate_backward_rows)(rows, output_gradient, norm, z, dz, scale_gradient, offset_gradient);
}
void add_column_sums(RowRange rows, ConstRows m, float* sums) { HWY_DYNAMIC_DISPATCH(sum_columns)(rows, m, sums); }

}  // namespace cgcn::kernels
#endif
