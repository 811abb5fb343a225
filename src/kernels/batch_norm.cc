#include "kernels/batch_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/batch_norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

// work(c, load, store): load(p) and store(v, p) of p[c …], whole vectors and what is left of the row.
template <class Work>
HWY_INLINE void for_columns(size_t width, Work&& work) {
  const FloatTag d;
  for_vectors(
      width,
      [&](size_t c) HWY_ATTR {
        work([&](const auto* from) HWY_ATTR { return load_values(d, from + c); },
             [&](FloatVector v, auto* to) HWY_ATTR { store_values(v, d, to + c); });
      },
      [&](size_t c, size_t rest) HWY_ATTR {
        work([&](const auto* from) HWY_ATTR { return load_values(d, from + c, rest); },
             [&](FloatVector v, auto* to) HWY_ATTR { store_values(v, d, to + c, rest); });
      });
}

void column_squares(RowRange rows, ConstMatrix m, const float* mean, float* sums) {
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const float* row = m.row(r);
    for_columns(m.columns, [&](auto&& load, auto&& store) HWY_ATTR {
      const FloatVector distance = hn::Sub(load(row), load(mean));
      store(hn::MulAdd(distance, distance, load(sums)), sums);
    });
  }
}

template <class T>
void normalise_matrix(RowRange rows, ConstMatrix z, const BatchNorm& norm, MatrixView<const T> residual,
                      MatrixView<T> out) {
  const FloatTag d;
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const float* from = z.row(r);
    const T* added = residual.rows > 0 ? residual.row(r) : nullptr;
    T* to = out.row(r);
    for_columns(z.columns, [&](auto&& load, auto&& store) HWY_ATTR {
      const FloatVector x = hn::Mul(hn::Sub(load(from), load(norm.mean)), load(norm.inverse_deviation));
      const FloatVector y = hn::Max(hn::MulAdd(x, load(norm.scale), load(norm.offset)), hn::Zero(d));
      store(added == nullptr ? y : hn::Add(y, load(added)), to);
    });
  }
}

void normalise(RowRange rows, ConstMatrix z, const BatchNorm& norm, ConstRows residual, Rows out) {
  if (out.is_half())
    normalise_matrix<BFloat16>(rows, z, norm, residual.halves(), out.halves());
  else
    normalise_matrix<float>(rows, z, norm, residual.floats(), out.floats());
}

template <class T>
void matrix_norm_gradients(RowRange rows, MatrixView<const T> output_gradient, const BatchNorm& norm, ConstMatrix z,
                           float* scale_gradient, float* offset_gradient) {
  const FloatTag d;
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const float* from = z.row(r);
    const T* gradient = output_gradient.row(r);
    for_columns(z.columns, [&](auto&& load, auto&& store) HWY_ATTR {
      const FloatVector x = hn::Mul(hn::Sub(load(from), load(norm.mean)), load(norm.inverse_deviation));
      const auto passes = hn::Gt(hn::MulAdd(x, load(norm.scale), load(norm.offset)), hn::Zero(d));
      const FloatVector g = hn::IfThenElseZero(passes, load(gradient));
      store(hn::MulAdd(g, x, load(scale_gradient)), scale_gradient);
      store(hn::Add(g, load(offset_gradient)), offset_gradient);
    });
  }
}

void norm_gradients(RowRange rows, ConstRows output_gradient, const BatchNorm& norm, ConstMatrix z,
                    float* scale_gradient, float* offset_gradient) {
  if (output_gradient.is_half())
    matrix_norm_gradients(rows, output_gradient.halves(), norm, z, scale_gradient, offset_gradient);
  else
    matrix_norm_gradients(rows, output_gradient.floats(), norm, z, scale_gradient, offset_gradient);
}

template <class T>
void normalise_matrix_backward(RowRange rows, MatrixView<const T> output_gradient, const BatchNorm& norm,
                               const float* scale_gradient, const float* offset_gradient, ConstMatrix z,
                               MatrixView<T> dz) {
  const FloatTag d;
  const FloatVector share = hn::Set(d, 1.0f / static_cast<float>(z.rows));
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const T* gradient = output_gradient.row(r);
    const float* row = z.row(r);
    T* to = dz.row(r);
    for_columns(z.columns, [&](auto&& load, auto&& store) HWY_ATTR {
      const FloatVector inverse = load(norm.inverse_deviation), scale = load(norm.scale);
      const FloatVector x = hn::Mul(hn::Sub(load(row), load(norm.mean)), inverse);
      const auto passes = hn::Gt(hn::MulAdd(x, scale, load(norm.offset)), hn::Zero(d));
      const FloatVector g = hn::IfThenElseZero(passes, load(gradient));
      const FloatVector centred = hn::NegMulAdd(share, load(offset_gradient), g);
      const FloatVector back = hn::NegMulAdd(hn::Mul(x, share), load(scale_gradient), centred);
      store(hn::Mul(back, hn::Mul(scale, inverse)), to);
    });
  }
}

void normalise_backward(RowRange rows, ConstRows output_gradient, const BatchNorm& norm, const float* scale_gradient,
                        const float* offset_gradient, ConstMatrix z, Rows dz) {
  if (dz.is_half())
    normalise_matrix_backward<BFloat16>(rows, output_gradient.halves(), norm, scale_gradient, offset_gradient, z,
                                        dz.halves());
  else
    normalise_matrix_backward<float>(rows, output_gradient.floats(), norm, scale_gradient, offset_gradient, z,
                                     dz.floats());
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(column_squares);
HWY_EXPORT(normalise);
HWY_EXPORT(norm_gradients);
HWY_EXPORT(normalise_backward);

void add_column_squares(RowRange rows, ConstMatrix m, const float* mean, float* sums) {
  HWY_DYNAMIC_DISPATCH(column_squares)(rows, m, mean, sums);
}
void normalise_columns(RowRange rows, ConstMatrix z, const BatchNorm& norm, ConstRows residual, Rows out) {
  HWY_DYNAMIC_DISPATCH(normalise)(rows, z, norm, residual, out);
}
void add_norm_gradients(RowRange rows, ConstRows output_gradient, const BatchNorm& norm, ConstMatrix z,
                        float* scale_gradient, float* offset_gradient) {
  HWY_DYNAMIC_DISPATCH(norm_gradients)(rows, output_gradient, norm, z, scale_gradient, offset_gradient);
}
void normalise_columns_backward(RowRange rows, ConstRows output_gradient, const BatchNorm& norm,
                                const float* scale_gradient, const float* offset_gradient, ConstMatrix z, Rows dz) {
  HWY_DYNAMIC_DISPATCH(normalise_backward)(rows, output_gradient, norm, scale_gradient, offset_gradient, z, dz);
}

}  // namespace cgcn::kernels
#endif
