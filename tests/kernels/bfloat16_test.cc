// bfloat16: rounding, and the products by every kind of instructions against a plain sum.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "common/random.h"
#include "kernels/bfloat16_choice.h"
#include "kernels/emulated_bfloat16.h"
#include "kernels/gemm.h"

namespace cgcn::kernels {
namespace {

constexpr BFloat16 kGap{0x7FC0};  // no number: read by mistake it spoils every sum

struct Products {
  const char* name;
  const BFloat16Functions* functions;
  friend void PrintTo(const Products& products, std::ostream* out) { *out << products.name; }
};

// Those of this processor, and of others by functions in place of instructions.
std::vector<Products> all_products() {
  std::vector<Products> all = {{"Float32", bfloat16_functions(BFloat16Kernels::kFloat32)},
                               {"EmulatedAvx512", &emulated_avx512_functions()},
                               {"EmulatedAmx", &emulated_amx_functions()}};
  if (avx512_functions() != nullptr) all.push_back({"Avx512", avx512_functions()});
  if (amx_functions() != nullptr) all.push_back({"Amx", amx_functions()});
  // AVX512-BF16 that a hypervisor hides, if who runs the test knows that the processor has it.
  if (std::getenv("CLUSTERGCN_HIDDEN_BFLOAT16") != nullptr) all.push_back({"HiddenAvx512", hidden_avx512_functions()});
  return all;
}

// Rows are apart by more than their width; the gaps hold what is no number and must stay so.
template <class T>
struct Spread {
  std::vector<T> values;
  MatrixView<T> view;
  Spread(size_t rows, size_t columns, T gap, size_t space = 5)
      : values(rows * (columns + space) + space, gap), view(values.data(), rows, columns, columns + space) {}
};

template <class T>
Spread<T> random_rows(size_t rows, size_t columns, T gap, uint64_t seed) {
  Spread<T> m(rows, columns, gap);
  Random random(seed, Purpose::kTest);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) store(random.normal(), m.view.row(r)[c]);
  return m;
}

struct Shape {
  size_t rows, inner, columns;
};
constexpr Shape kShapes[] = {{1, 1, 1},     {3, 2, 5},       {16, 32, 16},   {17, 33, 31},   {31, 100, 47},
                             {33, 50, 121}, {64, 129, 130},  {450, 100, 64}, {40, 1700, 48}, {70, 2050, 65},
                             {545, 64, 33}, {34, 1600, 290}, {545, 1600, 33}};

class BFloat16Products : public testing::TestWithParam<Products> {
 protected:
  void SetUp() override { use_bfloat16_functions(GetParam().functions); }
  void TearDown() override { use_bfloat16_functions(bfloat16_functions(best_bfloat16_kernels())); }
};

// Σ_k a(r, k)·b(k, c) + bias, and the rounding error that a float32 sum of so many terms may have.
template <class A, class B, class C>
void expect_product(const Shape& s, A&& a, B&& b, const float* bias, const C& c, double rounding) {
  for (size_t r = 0; r < s.rows; ++r)
    for (size_t j = 0; j < s.columns; ++j) {
      double sum = bias != nullptr ? bias[j] : 0, size = std::abs(sum);
      for (size_t k = 0; k < s.inner; ++k) {
        const double term = static_cast<double>(a(r, k)) * b(k, j);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(to_float(c.row(r)[j]), sum, 2e-6 * size + rounding * std::abs(sum) + 1e-30)
          << s.rows << " x " << s.inner << " x " << s.columns << " at " << r << ", " << j;
    }
}

float rounded(float value) { return to_float(to_bfloat16(value)); }

TEST_P(BFloat16Products, OfPackedWeightsAreSums) {
  for (const Shape& s : kShapes) {
    auto a = random_rows<BFloat16>(s.rows, s.inner, kGap, 1);
    auto w = random_rows<float>(s.inner, s.columns, NAN, 2);
    auto bias = random_rows<float>(1, s.columns, NAN, 3);
    std::vector<BFloat16> packed(PackedMatrix::elements(s.inner, s.columns), kGap);
    for (size_t begin = 0; begin < s.columns; begin += 32)
      pack(ConstMatrix(w.view), {begin, std::min(s.columns, begin + 32)}, packed.data());
    const PackedMatrix b{packed.data(), s.inner, s.columns};
    const auto at = [&](size_t r, size_t k) { return to_float(a.view.row(r)[k]); };
    const auto weight = [&](size_t k, size_t c) { return rounded(w.view.row(k)[c]); };
    Spread<float> c(s.rows, s.columns, 7.0f);
    multiply(a.view, b, c.view);
    expect_product(s, at, weight, nullptr, c.view, 0);
    for (size_t r = 0; r < s.rows; ++r) ASSERT_EQ(c.view.row(r)[s.columns], 7.0f);
    multiply(a.view, b, c.view, bias.view.data);
    expect_product(s, at, weight, bias.view.data, c.view, 0);
    Spread<BFloat16> half(s.rows, s.columns, kGap);
    multiply(a.view, b, half.view, bias.view.data);
    expect_product(s, at, weight, bias.view.data, half.view, 1.0 / 256);
    for (size_t r = 0; r < s.rows; ++r) ASSERT_EQ(half.view.row(r)[s.columns].bits, kGap.bits);
    multiply(a.view, b, half.view);
    expect_product(s, at, weight, nullptr, half.view, 1.0 / 256);
  }
}

TEST_P(BFloat16Products, OfTransposedWeightsAreSums) {
  for (const Shape& s : kShapes) {
    auto a = random_rows<BFloat16>(s.rows, s.inner, kGap, 4);
    auto w = random_rows<float>(s.columns, s.inner, NAN, 5);
    std::vector<BFloat16> packed(PackedMatrix::elements(s.inner, s.columns), kGap);
    pack_transposed(ConstMatrix(w.view), {0, s.columns}, packed.data());
    Spread<float> c(s.rows, s.columns, 7.0f);
    multiply(a.view, {packed.data(), s.inner, s.columns}, c.view);
    expect_product(
        s, [&](size_t r, size_t k) { return to_float(a.view.row(r)[k]); },
        [&](size_t k, size_t c2) { return rounded(w.view.row(c2)[k]); }, nullptr, c.view, 0);
  }
}

TEST_P(BFloat16Products, ByTransposesAreSums) {
  for (const Shape& s : kShapes) {
    auto a = random_rows<BFloat16>(s.inner, s.rows, kGap, 6);
    auto b = random_rows<BFloat16>(s.inner, s.columns, kGap, 7);
    std::vector<BFloat16> packed(PackedMatrix::elements(s.inner, s.columns), kGap);
    pack(ConstHalfMatrix(b.view), {0, s.columns}, packed.data());
    Spread<float> c(s.rows, s.columns, 7.0f);
    multiply_by_transpose_of(a.view, {packed.data(), s.inner, s.columns}, c.view);
    expect_product(
        s, [&](size_t r, size_t k) { return to_float(a.view.row(k)[r]); },
        [&](size_t k, size_t c2) { return to_float(b.view.row(k)[c2]); }, nullptr, c.view, 0);
  }
}

// Evaluation in the order of clusters relies on it.
TEST_P(BFloat16Products, RowsDoNotDependOnEachOther) {
  if (std::string(GetParam().name) == "Float32" && !rows_are_independent()) GTEST_SKIP() << "OpenBLAS's do";
  for (const Shape& s : {Shape{33, 50, 121}, Shape{70, 2050, 65}, Shape{545, 64, 33}}) {
    auto a = random_rows<BFloat16>(s.rows, s.inner, kGap, 8);
    auto w = random_rows<float>(s.inner, s.columns, NAN, 9);
    std::vector<BFloat16> packed(PackedMatrix::elements(s.inner, s.columns), kGap);
    pack(ConstMatrix(w.view), {0, s.columns}, packed.data());
    const PackedMatrix b{packed.data(), s.inner, s.columns};
    Spread<float> all(s.rows, s.columns, 7.0f), apart(s.rows, s.columns, 7.0f);
    multiply(a.view, b, all.view);
    for (size_t begin = 0, size = 1; begin < s.rows; begin += size, size = size % 40 + 13) {
      const size_t end = std::min(s.rows, begin + size);
      multiply(ConstHalfMatrix(a.view).rows_from(begin, end), b, apart.view.rows_from(begin, end));
    }
    EXPECT_EQ(all.values, apart.values) << s.rows << " x " << s.inner << " x " << s.columns;
  }
}

INSTANTIATE_TEST_SUITE_P(Processor, BFloat16Products, testing::ValuesIn(all_products()),
                         [](const auto& info) { return info.param.name; });

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bfloat16(1.0f).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(1.0f + 1.0f / 256).bits, 0x3F80);  // a tie: to even
  EXPECT_EQ(to_bfloat16(1.0f + 3.0f / 256).bits, 0x3F82);
  EXPECT_EQ(to_bfloat16(1.0f + 1.1f / 256).bits, 0x3F81);
  EXPECT_EQ(to_bfloat16(-2.0f).bits, 0xC000);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::infinity()).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7FFFFFFFu)))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7F800001u)))));
}

}  // namespace
}  // namespace cgcn::kernels
