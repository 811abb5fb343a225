// A row of the result is summed in registers, a strip of columns at a time.
//
// A batch's source lies in the second-level cache or near it: the strip is the outer loop, so that a strip of the
// source (a thousand rows of 512 bytes) stays there while its rows are read again and again. The source of a whole
// graph lies in memory: a row's strips follow each other, and the first of them asks for the whole rows of later
// entries. The sums are the same.
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
  uint64_t fetch_end = 0;  // entries before this one are fetched ahead of their use
};

constexpr size_t kCachedBytes = size_t{16} << 20;  // a source of more is fetched
constexpr uint64_t kAhead = 12;                    // entries: 19 KB of rows of 400 columns, on their way at a time

// Into the second-level cache, which has more requests under way than the first.
template <class Source>
HWY_INLINE void fetch_row(const Source* row, size_t columns) {
  constexpr size_t kLine = 64 / sizeof(Source);
  for (size_t c = 0; c < columns; c += kLine) __builtin_prefetch(row + c, 0, 2);
  __builtin_prefetch(row + columns - 1, 0, 2);
}

// One row, columns c … c + kVectors·lanes; if rest > 0 there is one vector and only `rest` of its lanes count.
template <int kVectors, bool kTail, bool kFetches, class Source, class Initial, class Out>
HWY_INLINE void aggregate_strip(const Sum<Source, Initial, Out>& sum, size_t r, size_t c, size_t rest) {
  const auto& [a, source, initial, mask, out, fetch_end] = sum;
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
    if constexpr (kFetches)
      if (i + kAhead < fetch_end) fetch_row(source.row(a.column_indices[i + kAhead]), source.columns);
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
    if (c == 0 && sum.fetch_end > 0)
      for (size_t r = rows.begin; r < rows.end; ++r) aggregate_strip<kVectors, kTail, true>(sum, r, c, strip);
    else
      for (size_t r = rows.begin; r < rows.end; ++r) aggregate_strip<kVectors, kTail, false>(sum, r, c, strip);
    c += strip;
  }
  return c;
}

using HalfSum = Sum<BFloat16, BFloat16, BFloat16>;

#if HWY_TARGET <= HWY_AVX3  // and better

constexpr uint64_t kPairsAhead = 8;  // entries, into the first-level cache

// The same for rows that are bfloat16 throughout, kVectors vectors of pairs of columns, of the last `rest` columns.
template <int kVectors>
HWY_INLINE void aggregate_pairs(const HalfSum& sum, size_t r, size_t c, size_t rest) {
  const auto& [a, source, initial, mask, out, fetch_end] = sum;
  const FloatTag d;
  const PairTag pairs;
  const size_t columns = hn::Lanes(pairs);
  const auto last = hn::FirstN(pairs, rest);
  const auto load = [&](const BFloat16* row, int k) HWY_ATTR {
    const auto* from = reinterpret_cast<const uint16_t*>(row) + k * columns;
    return split_pairs(k + 1 < kVectors ? hn::LoadU(pairs, from) : hn::MaskedLoad(last, pairs, from));
  };
  PairSums sums[kVectors];
  for (int k = 0; k < kVectors; ++k)
    sums[k] = r < initial.rows ? load(initial.row(r) + c, k) : PairSums{hn::Zero(d), hn::Zero(d)};
  const BFloat16* base = source.data + c;
  const uint64_t end = a.offsets[r + 1], last_entry = a.offsets[a.rows] - 1;
  for (uint64_t i = a.offsets[r]; i < end; ++i) {
    const BFloat16* row = base + a.column_indices[i] * source.stride;
    const BFloat16* ahead = base + a.column_indices[std::min(i + kPairsAhead, last_entry)] * source.stride;
    const FloatVector weight = hn::Set(d, a.values[i]);
    for (int k = 0; k < kVectors; ++k) {
      __builtin_prefetch(ahead + k * columns);
      const PairSums values = load(row, k);
      sums[k] = {hn::MulAdd(weight, values.even, sums[k].even), hn::MulAdd(weight, values.odd, sums[k].odd)};
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    const size_t column = c + k * columns;
    const Pairs kept = mask.empty() ? round_pairs(sums[k]) : drop_pairs(sums[k], mask.scale, mask.row(r), column);
    auto* to = reinterpret_cast<uint16_t*>(out.row(r) + column);
    if (k + 1 < kVectors)
      hn::StoreU(kept, pairs, to);
    else
      hn::BlendedStore(kept, last, pairs, to);
  }
}

template <int kVectors>
void aggregate_pairs_of(size_t count, const HalfSum& sum, RowRange rows, size_t c, size_t rest) {
  if (count == kVectors)
    for (size_t r = rows.begin; r < rows.end; ++r) aggregate_pairs<kVectors>(sum, r, c, rest);
  else if constexpr (kVectors > 1)
    aggregate_pairs_of<kVectors - 1>(count, sum, rows, c, rest);
}

// Strips of nearly equal width.
size_t aggregate_pair_strips(const HalfSum& sum, RowRange rows) {
  constexpr size_t kMostVectors = 12;
  const size_t columns = 2 * hn::Lanes(FloatTag()), width = sum.out.columns, vectors = (width + columns - 1) / columns;
  const size_t strips = (vectors + kMostVectors - 1) / kMostVectors;
  for (size_t i = 0; i < strips; ++i) {
    const size_t begin = vectors * i / strips, end = vectors * (i + 1) / strips;
    aggregate_pairs_of<kMostVectors>(end - begin, sum, rows, begin * columns,
                                     std::min(width, end * columns) - (end - 1) * columns);
  }
  return width;
}

#else

size_t aggregate_pair_strips(const HalfSum&, RowRange) { return 0; }

#endif

template <class Sum>
void aggregate_all_strips(const Sum& sum, RowRange rows) {
  size_t c = 0;
  if constexpr (std::is_same_v<Sum, HalfSum>)
    if (sum.fetch_end == 0) c = aggregate_pair_strips(sum, rows);
  c = aggregate_strips<8>(sum, rows, c);
  c = aggregate_strips<4>(sum, rows, c);
  c = aggregate_strips<2>(sum, rows, c);
  c = aggregate_strips<1>(sum, rows, c);
  aggregate_strips<1, true>(sum, rows, c);
}

template <class Source, class Initial, class Out>
void aggregate_sum(Sum<Source, Initial, Out> sum, RowRange rows) {
  if (sum.source.rows * sum.source.columns * sizeof(Source) <= kCachedBytes) return aggregate_all_strips(sum, rows);
  sum.fetch_end = sum.a.offsets[rows.end];
  for (size_t r = rows.begin; r < rows.end; ++r) aggregate_all_strips(sum, {r, r + 1});
}

void aggregate_rows(const SparseView& a, ConstRows source, RowRange rows, ConstRows initial, const DropoutMask& mask,
                    Rows out) {
  if (!source.is_half())
    return aggregate_sum(Sum<float, float, float>{a, source.floats(), initial.floats(), mask, out.floats()}, rows);
  const ConstHalfMatrix from = source.halves();
  if (!out.is_half())
    aggregate_sum(Sum<BFloat16, float, float>{a, from, initial.floats(), mask, out.floats()}, rows);
  else if (initial.is_half() || initial.rows == 0)
    aggregate_sum(HalfSum{a, from, initial.halves(), mask, out.halves()}, rows);
  else
    aggregate_sum(Sum<BFloat16, float, BFloat16>{a, from, initial.floats(), mask, out.halves()}, rows);
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
