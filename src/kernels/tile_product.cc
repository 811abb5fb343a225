// The sum runs over stretches of terms. Within one a panel of the right factor, a few vectors wide, meets all rows: 6
// or 8 rows by a panel are summed in registers (with AVX-512 24 sums, 3 vectors of the panel, one number of the left
// factor) and added to the result.
#include "kernels/tile_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_product.cc"
#include <algorithm>
#include <span>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"
#include "kernels/sparse_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cgcn::kernels::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2  // and better

// AVX-512 has 32 registers: 8 rows by 3 vectors; with AVX2 it is 6 by 2. The left factor would come from beyond the
// cache again for each panel: several are packed, and a block of rows meets them all.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
constexpr size_t kMostRows = kManyRegisters ? 8 : 6, kRowsAtOnce = 96;
constexpr size_t kMostVectors = kManyRegisters ? 3 : 2, kPanelsAtOnce = kManyRegisters ? 6 : 16;
constexpr size_t kTermsAtOnce = 256, kTermsAhead = 8, kLine = 16;
constexpr size_t kListColumns = 256;
constexpr bool kLoadsTails = kManyRegisters;  // a part of a vector by one instruction

// One panel and one stretch of terms: C [+]= A·B. A is transposed in memory if the product says so.
struct PanelProduct {
  const float* a;
  size_t a_stride;
  const float* b;  // a term's row of the panel
  size_t b_stride;
  size_t terms;
  Matrix c;
  const float* bias;  // a row that is added if C is not kept; may be null
  bool keep;
};

// kRows rows from row r on. kTail: the last vector's lanes count only up to c.columns. Loops over sums are unrolled to
// the end, or they would not stay in registers.
template <int kRows, int kVectors, bool kTransposed, bool kTail>
HWY_INLINE void multiply_rows(const PanelProduct& p, size_t r) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), a_stride = p.a_stride, b_stride = p.b_stride, c_stride = p.c.stride;
  const float* a = p.a + r * (kTransposed ? 1 : a_stride);
  const float* b = p.b;
  float* const c = p.c.row(r);
  FloatVector sums[kRows][kVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = hn::Zero(d);
      hwy::Prefetch(c + i * c_stride + v * lanes);
    }
  }
  const auto add_term = [&](size_t k) HWY_ATTR {
    if constexpr (kTransposed) hwy::Prefetch(a + kTermsAhead * a_stride);
    FloatVector right[kVectors];
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kTransposed) hwy::Prefetch(b + kTermsAhead * b_stride + v * lanes);  // rows far apart
      const bool in_place = kTransposed && kTail && kLoadsTails && v + 1 == kVectors;  // else there are zeros behind it
      right[v] = in_place ? load_first(d, b + v * lanes, p.c.columns - v * lanes) : hn::LoadU(d, b + v * lanes);
    }
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      const FloatVector left = hn::Set(d, kTransposed ? a[i] : a[i * a_stride + k]);
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]);
    }
    if constexpr (kTransposed) a += a_stride;
    b += b_stride;
  };
  size_t k = 0;
  for (; k + kLine <= p.terms; k += kLine) {
    if constexpr (!kTransposed)
      for (int i = 0; i < kRows; ++i) hwy::Prefetch(a + (i + kRows) * a_stride + k);  // the rows that come next
    HWY_UNROLL(4)
    for (size_t t = k; t < k + kLine; ++t) add_term(t);
  }
  for (; k < p.terms; ++k) add_term(k);
  // adds: a row at `other`, and then each stride floats on, is added.
  const auto put = [&](auto adds, const float* other, size_t stride) HWY_ATTR {
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        float* to = c + i * c_stride + v * lanes;
        const float* from = adds ? other + i * stride + v * lanes : nullptr;
        if (kTail && v + 1 == kVectors) {
          const size_t rest = p.c.columns - v * lanes;
          store_first(adds ? hn::Add(sums[i][v], load_first(d, from, rest)) : sums[i][v], d, to, rest);
        } else {
          hn::StoreU(adds ? hn::Add(sums[i][v], hn::LoadU(d, from)) : sums[i][v], d, to);
        }
      }
    }
  };
  if (p.keep)
    put(std::true_type(), c, c_stride);
  else if (p.bias != nullptr)
    put(std::true_type(), p.bias, 0);
  else
    put(std::false_type(), nullptr, 0);
}

template <int kVectors, bool kTransposed, bool kTail>
void multiply_panel(const PanelProduct& p) {
  size_t r = 0;
  for (; r + kMostRows <= p.c.rows; r += kMostRows) multiply_rows<kMostRows, kVectors, kTransposed, kTail>(p, r);
  for (; r + 2 <= p.c.rows; r += 2) multiply_rows<2, kVectors, kTransposed, kTail>(p, r);
  for (; r < p.c.rows; ++r) multiply_rows<1, kVectors, kTransposed, kTail>(p, r);
}

template <bool kTransposed, int kVectors = kMostVectors>
void multiply_panel_of(size_t vectors, const PanelProduct& p) {
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return multiply_panel_of<kTransposed, kVectors - 1>(vectors, p);
  if (p.c.columns % hn::Lanes(FloatTag()) == 0)
    multiply_panel<kVectors, kTransposed, false>(p);
  else
    multiply_panel<kVectors, kTransposed, true>(p);
}

// to(k, j) = b(k, j), `width` columns, those beyond b's are zero.
void pack_panel(ConstMatrix b, size_t width, float* to) {
  const FloatTag d;
  for (size_t k = 0; k < b.rows; ++k, to += width)
    for_vectors(
        b.columns, [&](size_t c) HWY_ATTR { hn::Store(hn::LoadU(d, b.row(k) + c), d, to + c); },
        [&](size_t c, size_t rest) HWY_ATTR { hn::Store(load_first(d, b.row(k) + c, rest), d, to + c); });
}

// to(k, j) = b(j, k), `width` columns, those beyond b's rows are zero. Four by four: every instruction set has the
// vectors for that.
void pack_transposed_panel(ConstMatrix b, size_t width, float* to) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto join = [&](auto low, auto high, bool upper) HWY_ATTR {
    const auto x = hn::BitCast(pairs, low), y = hn::BitCast(pairs, high);
    return hn::BitCast(d, upper ? hn::InterleaveUpper(pairs, x, y) : hn::InterleaveLower(pairs, x, y));
  };
  const size_t rows = b.rows / 4 * 4, columns = b.columns / 4 * 4;
  for (size_t j = 0; j < rows; j += 4)
    for (size_t k = 0; k < columns; k += 4) {
      const auto r0 = hn::LoadU(d, b.row(j) + k), r1 = hn::LoadU(d, b.row(j + 1) + k);
      const auto r2 = hn::LoadU(d, b.row(j + 2) + k), r3 = hn::LoadU(d, b.row(j + 3) + k);
      const auto low01 = hn::InterleaveLower(d, r0, r1), low23 = hn::InterleaveLower(d, r2, r3);
      const auto high01 = hn::InterleaveUpper(d, r0, r1), high23 = hn::InterleaveUpper(d, r2, r3);
      float* out = to + k * width + j;
      hn::StoreU(join(low01, low23, false), d, out);
      hn::StoreU(join(low01, low23, true), d, out + width);
      hn::StoreU(join(high01, high23, false), d, out + 2 * width);
      hn::StoreU(join(high01, high23, true), d, out + 3 * width);
    }
  for (size_t j = 0; j < width; ++j)
    for (size_t k = j < rows ? columns : 0; k < b.columns; ++k) to[k * width + j] = j < b.rows ? b.row(j)[k] : 0.0f;
}

struct Product {
  TileProduct kind;
  ConstMatrix a, b;
  Matrix c;
  const float* bias;
  float* packed;  // room for kTermsAtOnce rows of kPanelsAtOnce panels
};

// A panel of columns and its stretch of terms, packed or where it lies.
PanelProduct right_factor(const Product& product, RowRange terms, RowRange columns, float* packed) {
  const auto& [kind, a, b, c, bias, _] = product;
  const size_t lanes = hn::Lanes(FloatTag()), width = (columns.size() + lanes - 1) / lanes * lanes;
  PanelProduct p{nullptr,
                 a.stride,
                 packed,
                 width,
                 terms.size(),
                 c.columns_from(columns.begin, columns.end),
                 bias != nullptr ? bias + columns.begin : nullptr,
                 false};
  if (kind == TileProduct::kRightTransposed) {
    pack_transposed_panel(b.tile(columns.begin, columns.end, terms.begin, terms.end), width, packed);
  } else if (kind == TileProduct::kLeftTransposed && (kLoadsTails || columns.size() == width)) {
    p.b = b.row(terms.begin) + columns.begin;  // rows of nodes, whose stride suits the cache: no copy
    p.b_stride = b.stride;
  } else {
    pack_panel(b.tile(terms.begin, terms.end, columns.begin, columns.end), width, packed);
  }
  return p;
}

// A stretch of terms, and several panels of columns.
void multiply_terms(const Product& product, RowRange terms, std::span<const RowRange> panels, bool keep) {
  const auto& [kind, a, b, c, _, packed] = product;
  const size_t lanes = hn::Lanes(FloatTag());
  const bool left_transposed = kind == TileProduct::kLeftTransposed;
  PanelProduct products[kPanelsAtOnce];
  for (size_t i = 0; i < panels.size(); ++i)
    products[i] = right_factor(product, terms, panels[i], packed + i * kTermsAtOnce * kMostVectors * lanes);
  for (size_t r = 0; r < c.rows; r += kRowsAtOnce)
    for (size_t i = 0; i < panels.size(); ++i) {
      PanelProduct p = products[i];
      p.a = left_transposed ? a.row(terms.begin) + r : a.row(r) + terms.begin;
      p.c = p.c.rows_from(r, std::min(c.rows, r + kRowsAtOnce));
      p.keep = keep;
      const size_t vectors = (panels[i].size() + lanes - 1) / lanes;
      if (left_transposed)
        multiply_panel_of<true>(vectors, p);
      else
        multiply_panel_of<false>(vectors, p);
    }
}

// The left factor's rows r … of a stretch of terms.
ConstMatrix left_rows(const Product& product, RowRange rows, RowRange terms, float* turned) {
  const auto& [kind, a, b, c, bias, packed] = product;
  if (kind != TileProduct::kLeftTransposed) return a.tile(rows.begin, rows.end, terms.begin, terms.end);
  pack_transposed_panel(a.tile(terms.begin, terms.end, rows.begin, rows.end), terms.size(), turned);
  return {turned, rows.size(), terms.size()};
}

// With this share of zeros lists are as fast as none; and to make them takes as long as to multiply 16 columns. AVX-512
// multiplies a block of lists in so short a time that finding its end counts.
constexpr double kEvenShare = kManyRegisters ? 0.7 : 0.5;

bool lists_pay(const Product& product, RowRange terms) {
  const auto& [kind, a, b, c, bias, packed] = product;
  constexpr size_t kFewColumns = 64;
  if (c.columns < kFewColumns || c.columns % hn::Lanes(FloatTag()) != 0) return false;
  const bool left_transposed = kind == TileProduct::kLeftTransposed;
  return share_of_zeros(left_transposed ? a.rows_from(terms.begin, terms.end)
                                        : a.columns_from(terms.begin, terms.end)) >
         kEvenShare + 16.0 / static_cast<double>(c.columns);
}

// A stretch of terms by lists (sparse_terms-inl.h), for up to kListColumns columns.
void multiply_listed_terms(const Product& product, RowRange terms, RowRange columns, bool keep) {
  using Lists = TermLists<kTermsAtOnce>;
  const auto& [kind, a, b, c, bias, packed] = product;
  const size_t lanes = hn::Lanes(FloatTag()), vectors = columns.size() / lanes;
  const size_t strips = (vectors + kStripVectors - 1) / kStripVectors;
  const auto strip = [&](size_t i) {
    return RowRange{columns.begin + vectors * i / strips * lanes, columns.begin + vectors * (i + 1) / strips * lanes};
  };
  const auto packed_strip = [&](size_t i) { return product.packed + (strip(i).begin - columns.begin) * kTermsAtOnce; };
  const bool in_place = kind == TileProduct::kLeftTransposed;  // rows of nodes, whose stride suits the cache
  for (size_t i = 0; i < strips && !in_place; ++i) {
    const auto [begin, end] = strip(i);
    if (kind == TileProduct::kRightTransposed)
      pack_transposed_panel(b.tile(begin, end, terms.begin, terms.end), end - begin, packed_strip(i));
    else
      pack_panel(b.tile(terms.begin, terms.end, begin, end), end - begin, packed_strip(i));
  }
  Lists lists;
  HWY_ALIGN float turned[Lists::kRows * kTermsAtOnce];
  HWY_ALIGN float partial[Lists::kRows * kStripVectors * HWY_LANES(float)];
  for (size_t r = 0; r < c.rows; r += Lists::kRows) {
    const RowRange rows{r, std::min(c.rows, r + Lists::kRows)};
    lists.fill(left_rows(product, rows, terms, turned));
    for (size_t i = 0; i < strips; ++i) {
      const auto [begin, end] = strip(i);
      const float* right = in_place ? b.row(terms.begin) + begin : packed_strip(i);
      multiply_lists_of<kStripVectors>((end - begin) / lanes, lists, right, in_place ? b.stride : end - begin, keep,
                                       partial, c.tile(rows.begin, rows.end, begin, end));
    }
  }
}

void begin_rows(const float* bias, Matrix c) {
  for (size_t r = 0; r < c.rows; ++r) {
    if (bias != nullptr)
      std::copy_n(bias, c.columns, c.row(r));
    else
      std::fill_n(c.row(r), c.columns, 0.0f);
  }
}

bool multiply_by_vectors(TileProduct kind, ConstMatrix a, ConstMatrix b, Matrix c, float keep, const float* bias) {
  const size_t lanes = hn::Lanes(FloatTag()), inner = kind == TileProduct::kLeftTransposed ? a.rows : a.columns;
  if (inner == 0 && keep == 0) begin_rows(bias, c);
  HWY_ALIGN float packed[kTermsAtOnce * std::max(kPanelsAtOnce * kMostVectors * HWY_LANES(float), kListColumns)];
  const Product product{kind, a, b, c, bias, packed};
  const size_t vectors = (c.columns + lanes - 1) / lanes, panels = (vectors + kMostVectors - 1) / kMostVectors;
  // Of nearly equal width: a narrow one reads the left factor as often as a wide one.
  const auto panel = [&](size_t i) {
    return RowRange{vectors * i / panels * lanes, std::min(c.columns, vectors * (i + 1) / panels * lanes)};
  };
  for (size_t k = 0; k < inner; k += kTermsAtOnce) {
    const RowRange terms{k, std::min(inner, k + kTermsAtOnce)};
    bool add = keep != 0 || k > 0;
    if (lists_pay(product, terms)) {
      if (!add && bias != nullptr) {
        begin_rows(bias, c);
        add = true;
      }
      const size_t at_once = kind == TileProduct::kLeftTransposed ? c.columns : kListColumns;
      for (size_t column = 0; column < c.columns; column += at_once)
        multiply_listed_terms(product, terms, {column, std::min(c.columns, column + at_once)}, add);
      continue;
    }
    for (size_t i = 0; i < panels; i += kPanelsAtOnce) {
      RowRange group[kPanelsAtOnce];
      const size_t count = std::min(kPanelsAtOnce, panels - i);
      for (size_t j = 0; j < count; ++j) group[j] = panel(i + j);
      multiply_terms(product, terms, {group, count}, add);
    }
  }
  return true;
}

#else

bool multiply_by_vectors(TileProduct, ConstMatrix, ConstMatrix, Matrix, float, const float*) { return false; }

#endif

}  // namespace cgcn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cgcn::kernels {

HWY_EXPORT(multiply_by_vectors);

bool multiply_tile(TileProduct kind, ConstMatrix a, ConstMatrix b, Matrix c, float keep, const float* bias) {
  return HWY_DYNAMIC_DISPATCH(multiply_by_vectors)(kind, a, b, c, keep, bias);
}

}  // namespace cgcn::kernels
#endif
