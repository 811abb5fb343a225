// Products whose left factor is mostly zeros, as rows are after ReLU and dropout: only its other terms are multiplied.
// Included once per instruction set, by tile_product.cc.
//
// The terms that are not zero are listed row by row, in blocks so short that the right factor's rows of a block, a
// strip of columns wide, stay in the first-level cache. For each block a row's strip of the result is summed in
// registers. Every number is the sum of the same terms in the same order as without lists, and has the same bits: what
// is left out adds nothing. (A zero times what is no number is left out too.)
#if defined(CGCN_KERNELS_SPARSE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CGCN_KERNELS_SPARSE_TERMS_INL_H_
#undef CGCN_KERNELS_SPARSE_TERMS_INL_H_
#else
#define CGCN_KERNELS_SPARSE_TERMS_INL_H_
#endif

#include <algorithm>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2  // and better

// A block's strip of the right factor: 24 KB.
constexpr size_t kStripVectors = HWY_TARGET <= HWY_AVX3 ? 8 : 12;
constexpr size_t kBlockTerms = HWY_TARGET <= HWY_AVX3 ? 48 : 64;

// The share of zeros, by every 32nd row.
double share_of_zeros(ConstMatrix m) {
  constexpr size_t kEvery = 32;
  const FloatTag d;
  const size_t columns = m.columns / hn::Lanes(d) * hn::Lanes(d);
  size_t zeros = 0, seen = 0;
  for (size_t r = 0; r < m.rows; r += kEvery, seen += columns)
    for (size_t c = 0; c < columns; c += hn::Lanes(d))
      zeros += hn::CountTrue(d, hn::Eq(hn::LoadU(d, m.row(r) + c), hn::Zero(d)));
  return seen > 0 ? static_cast<double>(zeros) / static_cast<double>(seen) : 0;
}

#if HWY_TARGET > HWY_AVX3
// The set bits of a byte, lowest first; then anything.
struct SetBits {
  uint8_t of[256][8] = {};
  constexpr SetBits() {
    for (int byte = 0; byte < 256; ++byte)
      for (int bit = 0, count = 0; bit < 8; ++bit)
        if (byte >> bit & 1) of[byte][count++] = static_cast<uint8_t>(bit);
  }
};
constexpr SetBits kSetBits;
#endif

// Terms first … of a vector that are not zero; how many. The rest of the vectors that are stored does not count.
HWY_INLINE size_t keep_others(FloatVector v, uint32_t first, uint32_t* terms, float* values) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> words;
  const auto kept = hn::Not(hn::Eq(v, hn::Zero(d)));  // also what is no number
#if HWY_TARGET <= HWY_AVX3
  hn::StoreU(hn::Compress(hn::Iota(words, first), hn::RebindMask(words, kept)), words, terms);
  hn::StoreU(hn::Compress(v, kept), d, values);
  return hn::CountTrue(d, kept);
#else  // whose Compress copies its table to the stack for each call
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, kept, bits);
  const hn::Rebind<uint8_t, FloatTag> bytes;
  const auto places = hn::PromoteTo(words, hn::LoadU(bytes, kSetBits.of[bits[0]]));
  hn::StoreU(hn::Add(places, hn::Set(words, first)), words, terms);
  hn::StoreU(hn::TableLookupLanes(v, hn::IndicesFromVec(d, places)), d, values);
  return hn::CountTrue(d, kept);
#endif
}

// Terms of up to kRows rows that are not zero.
template <size_t kTerms>
class TermLists {
 public:
  static constexpr size_t kRows = 96;

  void fill(ConstMatrix rows) {
    const FloatTag d;
    size_t end = 0, list = 0;
    for (size_t r = 0; r < rows.rows; ++r)
      for (size_t begin = 0; begin < rows.columns; begin += kBlockTerms) {
        begins_[list++] = static_cast<uint32_t>(end);
        const size_t block_end = std::min(rows.columns, begin + kBlockTerms);
        size_t c = begin;
        for (; c + hn::Lanes(d) <= block_end; c += hn::Lanes(d)) {
          end += keep_others(hn::LoadU(d, rows.row(r) + c), static_cast<uint32_t>(c), terms_ + end, values_ + end);
        }
        for (; c < block_end; ++c)
          if (rows.row(r)[c] != 0) {
            terms_[end] = static_cast<uint32_t>(c);
            values_[end++] = rows.row(r)[c];
          }
      }
    begins_[list] = static_cast<uint32_t>(end);
    blocks_ = (rows.columns + kBlockTerms - 1) / kBlockTerms;
  }
  size_t blocks() const { return blocks_; }

  // sums[v] += row's terms of a block times the right factor's rows, kVectors vectors of each.
  template <int kVectors>
  HWY_INLINE void add(size_t row, size_t block, const float* right, size_t stride, FloatVector* sums) const {
    const FloatTag d;
    const size_t list = row * blocks_ + block, lanes = hn::Lanes(d);
    for (size_t i = begins_[list], end = begins_[list + 1]; i < end; ++i) {
      const float* from = right + terms_[i] * stride;
      const FloatVector left = hn::Set(d, values_[i]);
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(left, hn::LoadU(d, from + v * lanes), sums[v]);
    }
  }

 private:
  static constexpr size_t kMostLists = kRows * ((kTerms + kBlockTerms - 1) / kBlockTerms);
  size_t blocks_ = 0;
  uint32_t begins_[kMostLists + 1];
  uint32_t terms_[kRows * kTerms + HWY_LANES(float)];  // a vector is stored of which only the first lanes count
  float values_[kRows * kTerms + HWY_LANES(float)];
};

// C [+]= listed rows times a strip of the right factor, kVectors vectors wide. partial: room for kRows rows of it.
template <int kVectors, class Lists>
void multiply_lists(const Lists& lists, const float* right, size_t stride, bool keep, float* partial, Matrix c) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), blocks = lists.blocks();
  for (size_t block = 0; block < blocks; ++block)
    for (size_t r = 0; r < c.rows; ++r) {
      FloatVector sums[kVectors];
      float* before = partial + r * kVectors * lanes;
      for (int v = 0; v < kVectors; ++v) sums[v] = block == 0 ? hn::Zero(d) : hn::Load(d, before + v * lanes);
      lists.template add<kVectors>(r, block, right, stride, sums);
      if (block + 1 < blocks) {
        for (int v = 0; v < kVectors; ++v) hn::Store(sums[v], d, before + v * lanes);
        continue;
      }
      float* to = c.row(r);
      for (int v = 0; v < kVectors; ++v)
        hn::StoreU(keep ? hn::Add(sums[v], hn::LoadU(d, to + v * lanes)) : sums[v], d, to + v * lanes);
    }
}

template <int kVectors, class Lists>
void multiply_lists_of(size_t vectors, const Lists& lists, const float* right, size_t stride, bool keep, float* partial,
                       Matrix c) {
  if (vectors == kVectors) return multiply_lists<kVectors>(lists, right, stride, keep, partial, c);
  if constexpr (kVectors > 1) multiply_lists_of<kVectors - 1>(vectors, lists, right, stride, keep, partial, c);
}

#endif

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
