// Every SIMD kernel against its plain twin, on every instruction set that this CPU has, over odd sizes and strides.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/buffer.h"
#include "common/random.h"
#include "kernels/blas.h"
#include "kernels/gemm.h"
#include "kernels/reference.h"
#include "kernels/use_targets.h"

namespace cgcn::kernels {
namespace {

constexpr size_t kWidths[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 64, 100, 121, 128, 130, 257};

// A matrix whose rows are apart by more than their width; the gaps hold a number that must stay.
class TestMatrix {
 public:
  static constexpr float kGap = 12345.0f;
  TestMatrix(size_t rows, size_t columns, uint64_t seed, size_t gap = 3)
      : values_(rows * (columns + gap) + 1, kGap), view_(values_.data() + 1, rows, columns, columns + gap) {
    Random random(seed, Purpose::kTest);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) view_.row(r)[c] = random.normal();
  }
  Matrix view() { return view_; }
  void expect_near(TestMatrix& other, float tolerance) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const float bound = tolerance * (1 + std::abs(other.values_[i]));
      ASSERT_NEAR(values_[i], other.values_[i], bound) << "at " << i << " of " << values_.size();
    }
  }

 private:
  std::vector<float> values_;
  Matrix view_;
};

struct TestBits {
  std::vector<uint8_t> bits;
  DropoutMask mask;
  TestBits(size_t rows, size_t columns, float rate, uint64_t seed) : bits(rows * DropoutMask::bytes_for(columns) + 8) {
    mask = {bits.data(), DropoutMask::bytes_for(columns), dropout_scale(rate)};
    reference::draw_dropout({seed, 1, 2, 3}, rate, {0, rows}, {0, columns}, mask);
  }
};

class Kernels : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { use_targets(GetParam()); }
  void TearDown() override { use_targets(0); }
};

TEST_P(Kernels, AggregateEqualsItsTwin) {
  constexpr size_t kRows = 9, kSources = 13;
  Random random(4, Purpose::kTest);
  std::vector<uint64_t> offsets{0};
  std::vector<uint32_t> columns;
  std::vector<float> values;
  for (size_t r = 0; r < kRows; ++r) {
    for (uint32_t i = 0; i < r; ++i) {  // the first row is empty; columns neither rise nor differ
      columns.push_back(random.below(kSources));
      values.push_back(random.normal());
    }
    offsets.push_back(columns.size());
  }
  const SparseView a{kRows, kSources, offsets.data(), columns.data(), values.data()};
  for (const size_t width : kWidths) {
    TestMatrix source(kSources, width, 1), initial(5, width, 2), expected(kRows, width, 3, 5),
        actual(kRows, width, 3, 5);
    TestBits bits(kRows, width, 0.3f, 6);
    for (const DropoutMask& mask : {DropoutMask{}, bits.mask})
      for (const ConstMatrix& start : {ConstMatrix(), ConstMatrix(initial.view())}) {
        reference::aggregate(a, source.view(), {1, kRows}, expected.view(), start, mask);
        aggregate(a, source.view(), {1, kRows}, actual.view(), start, mask);
        actual.expect_near(expected, 1e-6f);
      }
  }
}

// Beyond the caches rows are summed in another order of strips and fetched ahead.
TEST_P(Kernels, AggregateOfALargeSourceHasTheBitsOfASmallOne) {
  constexpr uint32_t kRows = 7, kUsed = 40, kSources = 30000, kWidth = 183;  // 21 MiB
  Random random(5, Purpose::kTest);
  std::vector<uint64_t> offsets{0};
  std::vector<uint32_t> near, far, places;
  std::vector<float> values;
  for (uint32_t i = 0; i < kUsed; ++i) places.push_back(i + 1 < kUsed ? random.below(kSources) : kSources - 1);
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t i = 0; i < 5 * r; ++i) {
      near.push_back(random.below(kUsed));
      far.push_back(places[near.back()]);
      values.push_back(random.normal());
    }
    offsets.push_back(near.size());
  }
  TestMatrix small(kUsed, kWidth, 1), initial(5, kWidth, 2), expected(kRows, kWidth, 3), actual(kRows, kWidth, 3);
  std::vector<float> large(size_t{kSources} * kWidth);
  for (uint32_t i = 0; i < kUsed; ++i)
    for (uint32_t k = 0; k < kUsed; ++k)  // a place that was drawn twice has one row
      if (places[k] == places[i]) {
        std::copy_n(small.view().row(k), kWidth, &large[size_t{places[i]} * kWidth]);
        std::copy_n(small.view().row(k), kWidth, small.view().row(i));
        break;
      }
  const SparseView a{kRows, kUsed, offsets.data(), near.data(), values.data()};
  const SparseView b{kRows, kSources, offsets.data(), far.data(), values.data()};
  for (const ConstMatrix& start : {ConstMatrix(), ConstMatrix(initial.view())}) {
    aggregate(a, small.view(), {1, kRows}, expected.view(), start);
    aggregate(b, {large.data(), kSources, kWidth}, {1, kRows}, actual.view(), start);
    actual.expect_near(expected, 0);
  }
}

TEST_P(Kernels, DropoutBitsEqualTheirTwin) {
  for (const size_t width : kWidths) {
    constexpr size_t kRows = 5;
    const DropoutKey key{0x123456789abcdefu, 3, 0xffffffffu, 200};
    std::vector<uint8_t> expected(kRows * DropoutMask::bytes_for(width) + 8, 0xAA), actual = expected;
    const RowRange columns{width > 64 ? 64u : 0u, width};
    reference::draw_dropout(key, 0.2f, {1, kRows}, columns, {expected.data(), DropoutMask::bytes_for(width), 1});
    draw_dropout(key, 0.2f, {1, kRows}, columns, {actual.data(), DropoutMask::bytes_for(width), 1});
    EXPECT_EQ(actual, expected) << width;
  }
}

TEST_P(Kernels, ApplyDropoutEqualsItsTwin) {
  for (const size_t width : kWidths) {
    TestMatrix in(7, width, 1), expected(7, width, 2, 4), actual(7, width, 2, 4);
    TestBits bits(7, width, 0.4f, 8);
    for (const DropoutMask& mask : {DropoutMask{}, bits.mask}) {
      reference::apply_dropout(mask, {2, 7}, in.view(), expected.view());
      apply_dropout(mask, {2, 7}, in.view(), actual.view());
      actual.expect_near(expected, 0);
    }
    apply_dropout(bits.mask, {2, 7}, in.view(), in.view());  // in place
    for (size_t r = 2; r < 7; ++r)
      for (size_t c = 0; c < width; ++c) EXPECT_EQ(in.view().row(r)[c], expected.view().row(r)[c]);
  }
}

TEST_P(Kernels, GatherEqualsItsTwin) {
  const std::vector<uint32_t> ids{5, 0, 11, 5, 3, 9};
  for (const size_t width : kWidths) {
    Random random(6, Purpose::kTest);
    std::vector<float> floats(12 * width);
    for (float& value : floats) value = random.normal();
    std::vector<uint16_t> halves(12 * width);
    for (uint16_t& half : halves) half = static_cast<uint16_t>(random.below(0x7C00) | random.below(2) << 15);  // finite
    TestMatrix expected(6, width, 2), actual(6, width, 2);
    TestBits bits(6, width, 0.4f, 8);
    for (const DropoutMask& mask : {DropoutMask{}, bits.mask}) {
      reference::gather_rows(floats.data(), ids.data(), {1, 6}, mask, expected.view());
      gather_rows(floats.data(), ids.data(), {1, 6}, mask, actual.view());
      actual.expect_near(expected, 0);
      reference::gather_rows(halves.data(), ids.data(), {1, 6}, mask, expected.view());
      gather_rows(halves.data(), ids.data(), {1, 6}, mask, actual.view());
      actual.expect_near(expected, 0);
    }
  }
}

struct TestNorm {
  std::vector<float> scale, offset, mean, deviation;
  explicit TestNorm(size_t width, size_t rows) : scale(width), offset(width), mean(rows), deviation(rows) {
    Random random(9, Purpose::kTest);
    for (float& value : scale) value = random.normal();
    for (float& value : offset) value = random.normal();
  }
  LayerNorm norm() { return {scale.data(), offset.data(), mean.data(), deviation.data()}; }
};

TEST_P(Kernels, ActivationEqualsItsTwin) {
  constexpr size_t kRows = 6;
  for (const size_t width : kWidths) {
    TestMatrix z(kRows, width, 1), residual(kRows, width, 2), expected(kRows, width, 3), actual(kRows, width, 3);
    TestNorm twin(width, kRows), fast(width, kRows);
    for (const bool norm : {false, true})
      for (const ConstMatrix& added : {ConstMatrix(), ConstMatrix(residual.view())}) {
        reference::activate({1, kRows}, z.view(), norm ? twin.norm() : LayerNorm(), added, expected.view());
        activate({1, kRows}, z.view(), norm ? fast.norm() : LayerNorm(), added, actual.view());
        actual.expect_near(expected, 3e-6f);
      }
    for (size_t r = 1; r < kRows; ++r) {
      EXPECT_NEAR(fast.mean[r], twin.mean[r], 1e-6);
      EXPECT_NEAR(fast.deviation[r], twin.deviation[r], 1e-5 * twin.deviation[r]);
    }
  }
}

TEST_P(Kernels, ActivationBackwardEqualsItsTwin) {
  constexpr size_t kRows = 6;
  for (const size_t width : kWidths) {
    if (width < 3) continue;  // a row of one is its own mean: the gradient is rounding noise times 1/√ε
    TestMatrix gradient(kRows, width, 5);
    for (const bool norm : {false, true}) {
      TestMatrix expected(kRows, width, 1), actual(kRows, width, 1);
      TestNorm state(width, kRows);
      TestMatrix unused(kRows, width, 4);
      reference::activate({0, kRows}, expected.view(), state.norm(), {}, unused.view());
      std::vector<float> expected_sums(2 * width, 0.5f), sums(2 * width, 0.5f);
      const LayerNorm used = norm ? state.norm() : LayerNorm();
      reference::activate_backward({1, kRows}, gradient.view(), used, expected.view(), expected_sums.data(),
                                   expected_sums.data() + width);
      activate_backward({1, kRows}, gradient.view(), used, actual.view(), actual.view(), sums.data(),
                        sums.data() + width);
      actual.expect_near(expected, 2e-5f);
      for (size_t c = 0; c < 2 * width; ++c)
        EXPECT_NEAR(sums[c], expected_sums[c], 1e-5 * (1 + std::abs(expected_sums[c])));
    }
  }
}

TEST_P(Kernels, BatchNormEqualsItsTwin) {
  constexpr size_t kRows = 7;
  for (const size_t width : kWidths) {
    TestMatrix z(kRows, width, 1), residual(kRows, width, 2), gradient(kRows, width, 5);
    TestMatrix expected(kRows, width, 3), actual(kRows, width, 3);
    TestNorm state(width, width);
    Random random(4, Purpose::kTest);
    for (float& value : state.mean) value = random.normal();
    for (float& value : state.deviation) value = 0.5f + random.uniform();
    const BatchNorm norm{state.mean.data(), state.deviation.data(), state.scale.data(), state.offset.data()};
    const auto expect_equal = [](const std::vector<float>& a, const std::vector<float>& b) {
      for (size_t c = 0; c < a.size(); ++c) EXPECT_NEAR(a[c], b[c], 1e-5 * (1 + std::abs(b[c])));
    };
    std::vector<float> expected_sums(2 * width, 0.5f), sums(2 * width, 0.5f);
    reference::add_column_squares({1, kRows}, z.view(), norm.mean, expected_sums.data());
    add_column_squares({1, kRows}, z.view(), norm.mean, sums.data());
    expect_equal(sums, expected_sums);
    for (const ConstMatrix& added : {ConstMatrix(), ConstMatrix(residual.view())}) {
      reference::normalise_columns({1, kRows}, z.view(), norm, added, expected.view());
      normalise_columns({1, kRows}, z.view(), norm, added, actual.view());
      actual.expect_near(expected, 3e-6f);
    }
    reference::add_norm_gradients({1, kRows}, gradient.view(), norm, z.view(), expected_sums.data(),
                                  expected_sums.data() + width);
    add_norm_gradients({1, kRows}, gradient.view(), norm, z.view(), sums.data(), sums.data() + width);
    expect_equal(sums, expected_sums);
    TestMatrix twin(kRows, width, 1);
    reference::normalise_columns_backward({1, kRows}, gradient.view(), norm, sums.data(), sums.data() + width,
                                          twin.view());
    normalise_columns_backward({1, kRows}, gradient.view(), norm, sums.data(), sums.data() + width, z.view(), z.view());
    z.expect_near(twin, 2e-5f);
  }
}

TEST_P(Kernels, ColumnSumsEqualTheirTwin) {
  for (const size_t width : kWidths) {
    TestMatrix m(11, width, 1);
    std::vector<float> expected(width, 1), actual(width, 1);
    reference::add_column_sums({2, 11}, m.view(), expected.data());
    add_column_sums({2, 11}, m.view(), actual.data());
    EXPECT_EQ(actual, expected);
  }
}

TEST_P(Kernels, SoftmaxEqualsItsTwin) {
  for (const size_t classes : kWidths)
    for (const float spread : {1.0f, 60.0f}) {
      TestMatrix expected(3, classes, 1), actual(3, classes, 1);
      for (size_t r = 0; r < 3; ++r) {
        const auto label = static_cast<uint32_t>(r * 37 % classes);
        for (size_t c = 0; c < classes; ++c) actual.view().row(r)[c] = expected.view().row(r)[c] *= spread;
        const float loss = reference::softmax_cross_entropy(expected.view().row(r), classes, label, 0.25f);
        EXPECT_NEAR(softmax_cross_entropy(actual.view().row(r), classes, label, 0.25f), loss, 1e-5 * (1 + loss));
      }
      actual.expect_near(expected, 1e-6f);
    }
}

TEST_P(Kernels, SigmoidEqualsItsTwin) {
  for (const size_t classes : kWidths)
    for (const float spread : {1.0f, 60.0f}) {
      TestMatrix expected(3, classes, 1), actual(3, classes, 1);
      Random random(3, Purpose::kTest);
      for (size_t r = 0; r < 3; ++r) {
        std::vector<uint8_t> bits((classes + 7) / 8);
        for (auto& byte : bits) byte = static_cast<uint8_t>(random.next());
        for (size_t c = 0; c < classes; ++c) actual.view().row(r)[c] = expected.view().row(r)[c] *= spread;
        const float loss = reference::sigmoid_cross_entropy(expected.view().row(r), classes, bits.data(), 0.25f);
        EXPECT_NEAR(sigmoid_cross_entropy(actual.view().row(r), classes, bits.data(), 0.25f), loss, 1e-5 * (1 + loss));
      }
      actual.expect_near(expected, 1e-6f);
    }
}

TEST_P(Kernels, WeightedSigmoidEqualsItsTwin) {
  for (const size_t classes : kWidths) {
    TestMatrix expected(3, classes, 1), actual(3, classes, 1), weights(1, classes, 5);
    Random random(3, Purpose::kTest);
    for (size_t c = 0; c < classes; ++c) weights.view().row(0)[c] = 2 + weights.view().row(0)[c];
    for (size_t r = 0; r < 3; ++r) {
      std::vector<uint8_t> bits((classes + 7) / 8);
      for (auto& byte : bits) byte = static_cast<uint8_t>(random.next());
      const float* weight = weights.view().row(0);
      const float loss =
          reference::weighted_sigmoid_cross_entropy(expected.view().row(r), classes, bits.data(), weight, 0.25f);
      EXPECT_NEAR(weighted_sigmoid_cross_entropy(actual.view().row(r), classes, bits.data(), weight, 0.25f), loss,
                  1e-5 * (1 + loss));
    }
    actual.expect_near(expected, 2e-6f);
  }
}

TEST_P(Kernels, LossesDoNotHideWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const size_t place : {0, 5, 18}) {
      std::vector<float> logits(19, 0.5f);
      logits[place] = bad;
      std::vector<float> again = logits;
      const uint8_t bits[3] = {0x21, 0, 0};
      EXPECT_FALSE(std::isfinite(softmax_cross_entropy(logits.data(), logits.size(), 2, 1)));
      EXPECT_FALSE(std::isfinite(sigmoid_cross_entropy(again.data(), again.size(), bits, 1)));
    }
}

TEST_P(Kernels, AdamEqualsItsTwin) {
  AdamCoefficients k;
  k.weight_decay = 0.01f;
  k.value_scale = 0.98f;
  k.gradient_scale = 0.7f;
  k.step_size = 0.02f;
  k.second_scale = 3.1f;
  for (const size_t size : kWidths) {
    TestMatrix gradient(1, size, 1), value(1, size, 2), m(1, size, 3), v(1, size, 4);
    TestMatrix value2(1, size, 2), m2(1, size, 3), v2(1, size, 4);
    for (size_t i = 0; i < size; ++i) v2.view().data[i] = v.view().data[i] = std::abs(v.view().data[i]);
    for (int step = 0; step < 3; ++step) {
      reference::adam_step(k, size, gradient.view().data, value.view().data, m.view().data, v.view().data);
      adam_step(k, size, gradient.view().data, value2.view().data, m2.view().data, v2.view().data);
    }
    value2.expect_near(value, 1e-6f);
    m2.expect_near(m, 1e-6f);
    v2.expect_near(v, 1e-6f);
  }
}

// Where there is no gradient nothing moves, and one as small as ε makes a smaller step.
TEST_P(Kernels, AdamsEpsilonCounts) {
  AdamCoefficients k;
  k.step_size = 1;
  for (const size_t size : kWidths) {
    std::vector<float> gradient(size, 0.0f), value(size, 0.5f), m(size, 0.0f), v(size, 0.0f);
    gradient[0] = 1e-7f;  // m = 1e-8, √v = 3.2e-9: less than ε
    adam_step(k, size, gradient.data(), value.data(), m.data(), v.data());
    EXPECT_NEAR(value[0], 0.5f - 1e-8f / (std::sqrt(0.001f) * 1e-7f + 1e-8f), 1e-4f);
    for (size_t i = 1; i < size; ++i) ASSERT_EQ(value[i], 0.5f) << i;
  }
}

// Moments that have shrunk below the smallest normal number would make every later step slow. The caller's arithmetic
// is as it was afterwards.
TEST_P(Kernels, AdamLeavesNoTinyNumbers) {
  AdamCoefficients k;
  k.step_size = 1;
  for (const size_t size : kWidths) {
    const std::vector<float> gradient(size, 1e-20f);
    std::vector<float> value(size, 0.5f), m(size, 1e-39f), v(size, 1e-39f);
    adam_step(k, size, gradient.data(), value.data(), m.data(), v.data());
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(v[i], 0.0f) << i;
      ASSERT_NEAR(m[i], 1e-21f, 1e-26f) << i;
    }
  }
  volatile float smallest = std::numeric_limits<float>::min();
  EXPECT_GT(smallest / 2, 0.0f);
}

TEST_P(Kernels, SquaresAndFiniteness) {
  for (const size_t size : {1, 17, 1000, 1024, 5000}) {
    TestMatrix m(1, size, 1);
    float* x = m.view().data;
    const double expected = reference::sum_of_squares(size, x);
    EXPECT_NEAR(sum_of_squares(size, x), expected, 1e-6 * expected);
    EXPECT_TRUE(all_finite(size, x));
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      const float kept = x[size - 1];
      x[size - 1] = bad;
      EXPECT_FALSE(all_finite(size, x));
      EXPECT_TRUE(all_finite(size - 1, x));
      x[size - 1] = kept;
    }
  }
}

std::vector<int64_t> targets_of_this_cpu() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Simd, Kernels, testing::ValuesIn(targets_of_this_cpu()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

// With AVX-512 and AVX2 by our own code: 6, 2 or 1 rows and 1 to 4 vectors at a time, 256 terms to a block, and with
// AVX2 96 rows and 16 panels of 2 vectors. Without both by OpenBLAS.
TEST_P(Kernels, ProductsEqualTheirTwins) {
  prepare_blas();
  for (const size_t rows : {1, 5, 33, 103})
    for (const size_t columns : {1, 17, 40, 48, 64, 133, 275})
      for (const size_t inner : {0, 1, 8, 29, 530}) {
        TestMatrix a(rows, inner, 1), b(inner, columns, 2), expected(rows, columns, 3), actual(rows, columns, 3);
        TestMatrix transposed(rows, columns, 3), by_transpose(rows, columns, 3);
        TestMatrix a_transposed(inner, rows, 1), b_transposed(columns, inner, 1);
        for (size_t k = 0; k < inner; ++k) {
          for (size_t r = 0; r < rows; ++r) a_transposed.view().row(k)[r] = a.view().row(r)[k];
          for (size_t c = 0; c < columns; ++c) b_transposed.view().row(c)[k] = b.view().row(k)[c];
        }
        for (const float keep : {0.0f, 1.0f}) {
          reference::multiply(a.view(), b.view(), expected.view(), keep);
          multiply(a.view(), b.view(), actual.view(), keep);
          actual.expect_near(expected, 5e-5f);
          multiply_transposed(a.view(), b_transposed.view(), transposed.view(), keep);
          transposed.expect_near(expected, 5e-5f);
          multiply_by_transpose_of(a_transposed.view(), b.view(), by_transpose.view(), keep);
          by_transpose.expect_near(expected, 5e-5f);
        }
      }
}

TEST(Tiles, CoverTheResultOnce) {
  for (const size_t rows : {0, 1, 15, 16, 100, 900, 1140, 2053})
    for (const size_t columns : {1, 47, 121, 512, 2048})
      for (const Tiles& tiles : {Tiles::of_rows(rows, columns), Tiles::of_weights(rows, columns)}) {
        std::vector<int> covered(rows * columns);
        for (size_t i = 0; i < tiles.count(); ++i)
          for (size_t r = tiles.rows(i).begin; r < tiles.rows(i).end; ++r)
            for (size_t c = tiles.columns(i).begin; c < tiles.columns(i).end; ++c) ++covered[r * columns + c];
        for (const int times : covered) ASSERT_EQ(times, 1);
      }
}

}  // namespace
}  // namespace cgcn::kernels
