// Products of tiles to the last bit: a result is the sum of its terms in their order, whether a left factor with many
// zeros is multiplied as it is or by lists of its other terms.
#include "kernels/tile_product.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"
#include "kernels/gemm.h"
#include "kernels/use_targets.h"

namespace cgcn::kernels {
namespace {

struct Factor {
  std::vector<float> values;
  Matrix view;
  Factor(size_t rows, size_t columns) : values(rows * padded_stride(columns), 7.0f) {
    view = padded(values.data(), rows, columns);
  }
};

// share: of each 256 columns, what is not zero.
Factor random_factor(size_t rows, size_t columns, const std::vector<double>& share, uint64_t seed) {
  Factor factor(rows, columns);
  Random random(seed, Purpose::kTest);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      factor.view.row(r)[c] = random.uniform() < share[c / 256 % share.size()] ? random.normal() : 0.0f;
  return factor;
}

Factor transpose(const Factor& from) {
  Factor to(from.view.columns, from.view.rows);
  for (size_t r = 0; r < from.view.rows; ++r)
    for (size_t c = 0; c < from.view.columns; ++c) to.view.row(c)[r] = from.view.row(r)[c];
  return to;
}

// Stretches of 256 terms, each summed by itself.
Factor sum_of_terms(const Factor& a, const Factor& b, const Factor* before) {
  Factor c(a.view.rows, b.view.columns);
  for (size_t r = 0; r < a.view.rows; ++r)
    for (size_t j = 0; j < b.view.columns; ++j) {
      float result = before != nullptr ? before->view.row(r)[j] : 0;
      for (size_t begin = 0; begin < a.view.columns; begin += 256) {
        float sum = 0;
        for (size_t k = begin; k < std::min(a.view.columns, begin + 256); ++k)
          sum = std::fma(a.view.row(r)[k], b.view.row(k)[j], sum);
        result = begin == 0 && before == nullptr ? sum : result + sum;
      }
      c.view.row(r)[j] = result;
    }
  return c;
}

template <class Check>
void for_each_target(Check&& check) {
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    use_targets(rest & -rest);
    if (rows_are_independent()) check(hwy::TargetName(rest & -rest));
  }
  use_targets(0);
}

struct ProductShape {
  size_t rows, inner, columns;
};

TEST(TileProduct, IsTheSumOfItsTermsInOrder) {
  constexpr ProductShape kProductShapes[] = {{7, 300, 64},   {100, 530, 208}, {97, 70, 400}, {200, 512, 72},
                                             {33, 257, 131}, {65, 100, 47},   {20, 30, 5}};
  for (const auto& share : {std::vector{1.0}, std::vector{0.3}, std::vector{0.8, 0.2}, std::vector{0.0, 0.45, 1.0}})
    for (const ProductShape& s : kProductShapes) {
      const Factor a = random_factor(s.rows, s.inner, share, 1), a_transposed = transpose(a);
      const Factor b = random_factor(s.inner, s.columns, {1.0}, 2), b_transposed = transpose(b);
      const Factor first = sum_of_terms(a, b, nullptr), second = sum_of_terms(a, b, &first);
      for_each_target([&](const char* target) {
        Factor plain(s.rows, s.columns), right(s.rows, s.columns), left(s.rows, s.columns);
        for (const bool keep : {false, true}) {
          const Factor& expected = keep ? second : first;
          const auto factor = static_cast<float>(keep);
          multiply_tile(TileProduct::kPlain, a.view, b.view, plain.view, factor);
          EXPECT_EQ(plain.values, expected.values) << target << " " << s.rows << " x " << s.inner;
          multiply_tile(TileProduct::kRightTransposed, a.view, b_transposed.view, right.view, factor);
          EXPECT_EQ(right.values, expected.values) << target << " " << s.rows << " x " << s.inner;
          multiply_tile(TileProduct::kLeftTransposed, a_transposed.view, b.view, left.view, factor);
          EXPECT_EQ(left.values, expected.values) << target << " " << s.rows << " x " << s.inner;
        }
      });
    }
}

TEST(TileProduct, BeginsAsTheBias) {
  for (const auto& share : {std::vector{1.0}, std::vector{0.2}, std::vector{0.8, 0.2}, std::vector{0.2, 0.8}})
    for (const ProductShape& s : {ProductShape{97, 300, 400}, {100, 530, 131}, {8, 40, 47}, {5, 0, 30}}) {
      const Factor a = random_factor(s.rows, s.inner, share, 1), b = random_factor(s.inner, s.columns, {1.0}, 2);
      std::vector<float> bias(s.columns);
      for (size_t j = 0; j < s.columns; ++j) bias[j] = static_cast<float>(j % 7) - 2.5f;
      Factor begun(s.rows, s.columns);
      for (size_t r = 0; r < s.rows; ++r) std::ranges::copy(bias, begun.view.row(r));
      const Factor expected = sum_of_terms(a, b, &begun);
      for_each_target([&](const char* target) {
        Factor c(s.rows, s.columns);
        multiply_tile(TileProduct::kPlain, a.view, b.view, c.view, 0, bias.data());
        EXPECT_EQ(c.values, expected.values) << target << " " << s.rows << " x " << s.inner;
      });
      for (const int64_t targets : {int64_t{0}, targets_of_openblas()}) {
        use_targets(targets);
        Factor c(s.rows, s.columns);
        multiply_and_add(a.view, b.view, bias.data(), c.view);
        for (size_t r = 0; r < s.rows; ++r)
          for (size_t j = 0; j < s.columns; ++j) EXPECT_NEAR(c.view.row(r)[j], expected.view.row(r)[j], 1e-3);
      }
      use_targets(0);
    }
}

// What is no number is never taken for a zero.
TEST(TileProduct, ListsHaveWhatIsNoNumber) {
  for_each_target([](const char* target) {
    Factor a = random_factor(50, 100, {0.2}, 3);
    const Factor b = random_factor(100, 64, {1.0}, 4);
    a.view.row(10)[50] = std::numeric_limits<float>::quiet_NaN();
    Factor c(50, 64);
    multiply_tile(TileProduct::kPlain, a.view, b.view, c.view, 0);
    EXPECT_TRUE(std::isnan(c.view.row(10)[3])) << target;
    EXPECT_FALSE(std::isnan(c.view.row(11)[3])) << target;
  });
}

}  // namespace
}  // namespace cgcn::kernels
