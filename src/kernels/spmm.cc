// A row of the result is summed in registers, a strip of columns at a time. The strip is the outer loop: a strip of the
// source (a thousand rows of 512 bytes) stays in the second-level cache while its rows are read again and again.
#include "kernels/spmm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/spmm.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

// out = D(initial + A·source)
template <class Source, class Initial, class Out>
struct Sum {
  const SparseView& a;
  MatrixView<const Source> source;
  MatrixView<const Initial> initial;
  const DropoutMask& mask;
  MatrixView<Out> out;
};

// One row, columns c … c + kVectors·lanes; if rest > 0 there is one vector and only `rest` of its lanes count.
template <int kVectors, bool kTail, class Source, class Initial, class Out>
HWY_INLINE void aggregate_strip(const Sum<Source, Initial, Out>& sum, size_t r, size_t c, size_t rest) {
  const auto& [a, source, initial, mask, out] = sum;
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const auto* from) HWY_ATTR {
    if constexpr (kTail) return load_values(d, from, rest);
    return load_values(d, from);
  };
  FloatVector sums[kVectors];
  const Initial* first = r < initial.rows ? initial.row(r) + c : nullptr;
  for (int k = 0; k < kVectors; ++k) sums[k] = first != nullptr ? load(first + k * lanes) : hn::Zero(d);
  const Source* base = source.data + c;
  const uint64_t end = a.offsets[r + 1];
  for (uint64_t i = a.offsets[r]; i < end; ++i) {
    const Source* row = base + a.column_indices[i] * source.stride;
    const FloatVector weight = hn::Set(d, a.values[i]);
    for (int k = 0; k < kVectors; ++k) sums[k] = hn::MulAdd(weight, load(row + k * lanes), sums[k]);
  }
  Out* to = out.row(r) + c;
  for (int k = 0; k < kVectors; ++k) {
    FloatVector kept = sums[k];
    if (!mask.empty())
      kept = hn::IfThenElseZero(bits_at(d, mask.row(r), c + k * lanes), hn::Mul(kept, hn::Set(d, mask.scale)));
    if constexpr (kTail)
      store_values(kept, d, to, rest);
    else
      store_values(kept, d, to + k * lanes);
  }
}

template <int kVectors, bool kTail = false, class Sum>
size_t aggregate_strips(const Sum& sum, RowRange rows, size_t c) {
  const size_t width = sum.out.columns, strip = kTail ? width - c : kVectors * hn::Lanes(FloatTag());
  while (c + strip <= width && c < width) {
    for (size_t r = rows.begin; r < rows.end; ++r) aggregate_strip<kVectors, kTail>(sum, r, c, strip);
    c += strip;
  }
  return c;
}

template <class Sum>
void aggregate_all_strips(const Sum& sum, RowRange rows) {
  size_t c = aggregate_strips<8>(sum, rows, 0);
  c = aggregate_strips<4>(sum, rows, c);
  c = aggregate_strips<2>(sum, rows, c);
  c = aggregate_strips<1>(sum, rows, c);
  aggregate_strips<1, true>(sum, rows, c);
}

void aggregate_rows(const SparseView& a, ConstRows source, RowRange rows, ConstRows initial, const DropoutMask& mask,
                    Rows out) {
  if (!source.is_half())
    return aggregate_all_strips(Sum<float, float, float>{a, source.floats(), initial.floats(), mask, out.floats()},
                                rows);
  const ConstHalfMatrix from = source.halves();
  if (!out.is_half())
    aggregate_all_strips(Sum<BFloat16, float, float>{a, from, initial.floats(), mask, out.floats()}, rows);
  else if (initial.is_half())
    aggregate_all_strips(Sum<BFloat16, BFloat16, BFloat16>{a, from, initial.halves(), mask, out.halves()}, rows);
  else
    aggregate_all_strips(Sum<BFloat16, float, BFloat16>{a, from, initial.floats(), mask, out.halves()}, rows);
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(aggregate_rows);

void aggregate(const SparseView& a, ConstRows source, RowRange rows, Rows out, ConstRows initial,
               const DropoutMask& mask) {
  HWY_DYNAMIC_DISPATCH(aggregate_rows)(a, source, rows, initial, mask, out);
}

}  // namespace cgcn::kernels
#endif
