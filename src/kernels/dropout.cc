#include "kernels/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cc"
#include <algorithm>

#include "common/random.h"
#include "hwy/foreach_target.h"
#include "kernels/philox-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void draw_rows(const DropoutKey& key, float rate, RowRange rows, RowRange columns, const DropoutMask& mask) {
  const PhiloxKey seed = philox_key(key.seed, Purpose::kDropout);
  const uint32_t threshold = dropout_threshold(rate), stream = key.stream << 24;
  const size_t begin = columns.begin / 8, end = begin + DropoutMask::bytes_for(columns.size());
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t byte = begin; byte < end; ++byte) mask.row(r)[byte] = 0;
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t draw = begin; draw < end; ++draw) {  // four bits of its group's first half, four of the second
      const PhiloxWords words =
          philox({static_cast<uint32_t>(draw) | stream, static_cast<uint32_t>(r), key.batch, key.epoch}, seed);
      for (size_t i = 0; i < 8; ++i) {  // the numbers of a draw: two per word
        const size_t bit = 32 * (i / 4) + 4 * (draw % 8) + i % 4;
        const bool kept = ((words[i / 2] >> (i % 2 * 16)) & 0xFFFF) >= threshold;
        if (kept) mask.row(r)[draw / 8 * 8 + bit / 8] |= static_cast<uint8_t>(1u << (bit % 8));
      }
    }
}

#else

// A pair of words per draw, as 16-bit numbers side by side: four bits per draw.
HWY_INLINE void store_kept(Words low, Words high, uint32_t threshold, uint8_t* bits) {
  const hn::Repartition<uint32_t, WordTag> d32;
  const hn::Repartition<uint16_t, WordTag> d16;
  const auto pair = hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(high)), hn::BitCast(d32, low));
  const auto numbers = hn::BitCast(d16, pair);
  hn::StoreMaskBits(d16, hn::Not(hn::Lt(numbers, hn::Set(d16, static_cast<uint16_t>(threshold)))), bits);
}

void draw_rows(const DropoutKey& key, float rate, RowRange rows, RowRange columns, const DropoutMask& mask) {
  const WordTag d;
  const size_t lanes = hn::Lanes(d);
  const RoundKeys keys(philox_key(key.seed, Purpose::kDropout));
  const uint32_t threshold = dropout_threshold(rate);
  // Made once: a vector that is put together from eight numbers in the loop waits for all of them to reach the cache.
  const Words iota = hn::Iota(d, 0), batch = hn::Set(d, uint64_t{key.batch}), epoch = hn::Set(d, uint64_t{key.epoch});
  const uint64_t stream = uint64_t{key.stream} << 24;
  const size_t begin = columns.begin / 8, end = begin + DropoutMask::bytes_for(columns.size());
  for (size_t r = rows.begin; r < rows.end; ++r)
    for (size_t byte = begin; byte < end; byte += 8)  // draw and byte have the same number
      for (size_t lane = 0; lane < 8; lane += lanes) {
        Words c0 = hn::Add(iota, hn::Set(d, byte + lane + stream)), c1 = hn::Set(d, r), c2 = batch, c3 = epoch;
        philox_lanes(keys, c0, c1, c2, c3);
        uint8_t* bits = mask.row(r) + byte + lane / 2;
        store_kept(c0, c1, threshold, bits);
        store_kept(c2, c3, threshold, bits + 4);
      }
}

#endif

// Bits of a binary16 number.
struct Binary16 {
  uint16_t bits;
};
HWY_INLINE FloatVector load_values(FloatTag d, const Binary16* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}

template <class From, class To>
HWY_INLINE void copy_row(const From* from, const uint8_t* bits, float scale, size_t width, To* to) {
  const FloatTag d;
  const FloatVector scales = hn::Set(d, scale);
  const auto drop = [&](FloatVector v, size_t c) HWY_ATTR {
    return bits == nullptr ? v : hn::IfThenElseZero(bits_at(d, bits, c), hn::Mul(v, scales));
  };
  for_vectors(
      width, [&](size_t c) HWY_ATTR { store_values(drop(load_values(d, from + c), c), d, to + c); },
      [&](size_t c, size_t rest) HWY_ATTR { store_values(drop(load_values(d, from + c, rest), c), d, to + c, rest); });
}

// bfloat16 stays what it is, or is scaled.
HWY_INLINE void copy_row(const BFloat16* from, const uint8_t* bits, float scale, size_t width, BFloat16* to) {
  size_t c = 0;
  if (bits == nullptr) {
    std::copy_n(from, width, to);
    return;
  }
#if HWY_TARGET <= HWY_AVX3
  const PairTag pairs;
  for (; c + hn::Lanes(pairs) <= width; c += hn::Lanes(pairs)) {
    const Pairs values = hn::LoadU(pairs, reinterpret_cast<const uint16_t*>(from + c));
    hn::StoreU(drop_pairs(split_pairs(values), scale, bits, c), pairs, reinterpret_cast<uint16_t*>(to + c));
  }
#endif
  copy_row<BFloat16, BFloat16>(from + c, bits + c / 8, scale, width - c, to + c);
}

template <class From, class To>
void copy_matrix(const DropoutMask& mask, RowRange rows, MatrixView<const From> in, MatrixView<To> out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    copy_row(in.row(r), mask.empty() ? nullptr : mask.row(r), mask.scale, out.columns, out.row(r));
}

void apply_rows(const DropoutMask& mask, RowRange rows, ConstRows in, Rows out) {
  if (in.is_half() && out.is_half())
    copy_matrix(mask, rows, in.halves(), out.halves());
  else if (in.is_half())
    copy_matrix(mask, rows, in.halves(), out.floats());
  else if (out.is_half())
    copy_matrix(mask, rows, in.floats(), out.halves());
  else
    copy_matrix(mask, rows, in.floats(), out.floats());
}

template <class From, class To>
void gather_matrix(const From* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask,
                   MatrixView<To> out) {
  for (size_t r = rows.begin; r < rows.end; ++r)
    copy_row(source + ids[r] * out.columns, mask.empty() ? nullptr : mask.row(r), mask.scale, out.columns, out.row(r));
}

template <class From>
HWY_INLINE void gather_either(const From* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask,
                              const Rows& out) {
  if (out.is_half())
    gather_matrix(source, ids, rows, mask, out.halves());
  else
    gather_matrix(source, ids, rows, mask, out.floats());
}

void gather_float(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out) {
  gather_either(source, ids, rows, mask, out);
}
void gather_binary16(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out) {
  gather_either(reinterpret_cast<const Binary16*>(source), ids, rows, mask, out);
}
void gather_bfloat16(const BFloat16* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out) {
  gather_either(source, ids, rows, mask, out);
}

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(draw_rows);
HWY_EXPORT(apply_rows);
HWY_EXPORT(gather_float);
HWY_EXPORT(gather_binary16);
HWY_EXPORT(gather_bfloat16);

void draw_dropout(const DropoutKey& key, float rate, RowRange rows, RowRange columns, const DropoutMask& mask) {
  HWY_DYNAMIC_DISPATCH(draw_rows)(key, rate, rows, columns, mask);
}
void apply_dropout(const DropoutMask& mask, RowRange rows, ConstRows in, Rows out) {
  HWY_DYNAMIC_DISPATCH(apply_rows)(mask, rows, in, out);
}
void gather_rows(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out) {
  HWY_DYNAMIC_DISPATCH(gather_float)(source, ids, rows, mask, out);
}
void gather_rows(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out) {
  HWY_DYNAMIC_DISPATCH(gather_binary16)(source, ids, rows, mask, out);
}
void gather_rows(const BFloat16* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out) {
  HWY_DYNAMIC_DISPATCH(gather_bfloat16)(source, ids, rows, mask, out);
}

}  // namespace cgcn::kernels
#endif
