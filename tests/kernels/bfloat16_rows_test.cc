// Kernels on rows in bfloat16: on every instruction set of this CPU they give what the float32 kernel, which
// kernels_test.cc compares with its plain twin, makes of the same numbers, rounded once. Bit for bit.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/random.h"
#include "kernels/activation.h"
#include "kernels/batch_norm.h"
#include "kernels/bfloat16.h"
#include "kernels/dropout.h"
#include "kernels/spmm.h"

namespace cgcn::kernels {
namespace {

constexpr size_t kRowWidths[] = {1, 3, 8, 15, 16, 17, 31, 64, 100, 121, 130, 257, 385, 801};
constexpr size_t kRowCount = 9;

// The same numbers in both precisions. Rows are apart by more than their width; what lies between must stay.
struct Twins {
  static constexpr BFloat16 kGap{0x4640};
  std::vector<float> floats;
  std::vector<BFloat16> halves;
  size_t rows, columns;

  Twins(size_t row_count, size_t column_count, uint64_t seed)
      : floats(row_count * (column_count + 3), to_float(kGap)),
        halves(floats.size(), kGap),
        rows(row_count),
        columns(column_count) {
    Random random(seed, Purpose::kTest);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        const BFloat16 value = to_bfloat16(random.normal());
        half().row(r)[c] = value;
        full().row(r)[c] = to_float(value);
      }
  }
  Matrix full() { return {floats.data(), rows, columns, columns + 3}; }
  HalfMatrix half() { return {halves.data(), rows, columns, columns + 3}; }
  void expect_rounded() const {
    for (size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(halves[i].bits, to_bfloat16(floats[i]).bits) << "at " << i << ", " << columns << " columns";
  }
};

struct Bits {
  std::vector<uint8_t> bits;
  DropoutMask mask;
  Bits(size_t rows, size_t columns) : bits(rows * DropoutMask::bytes_for(columns) + 8) {
    mask = {bits.data(), DropoutMask::bytes_for(columns), dropout_scale(0.3f)};
    draw_dropout({5, 1, 2, 3}, 0.3f, {0, rows}, {0, columns}, mask);
  }
};

// Some numbers of a norm.
struct Numbers {
  std::vector<float> values;
  Numbers(size_t size, uint64_t seed) : values(size) {
    Random random(seed, Purpose::kTest);
    for (float& value : values) value = 0.5f + random.uniform();
  }
};

class BFloat16Rows : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { use(GetParam()); }
  void TearDown() override { use(0); }  // 0: whatever the CPU has
  static void use(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(BFloat16Rows, Aggregate) {
  constexpr size_t kSources = 13;
  Random random(4, Purpose::kTest);
  std::vector<uint64_t> offsets{0};
  std::vector<uint32_t> columns;
  std::vector<float> values;
  for (size_t r = 0; r < kRowCount; ++r) {
    for (uint32_t i = 0; i < r; ++i) {
      columns.push_back(random.below(kSources));
      values.push_back(random.normal());
    }
    offsets.push_back(columns.size());
  }
  const SparseView a{kRowCount, kSources, offsets.data(), columns.data(), values.data()};
  for (const size_t width : kRowWidths) {
    Twins source(kSources, width, 1), initial(5, width, 2), out(kRowCount, width, 3);
    const Bits drawn(kRowCount, width);
    for (const DropoutMask& mask : {DropoutMask(), drawn.mask}) {
      aggregate(a, source.full(), {1, kRowCount}, out.full(), {}, mask);
      aggregate(a, source.half(), {1, kRowCount}, out.half(), {}, mask);
      out.expect_rounded();
      aggregate(a, source.full(), {1, kRowCount}, out.full(), initial.full(), mask);
      for (const ConstRows& start : {ConstRows(initial.full()), ConstRows(initial.half())}) {
        aggregate(a, source.half(), {1, kRowCount}, out.half(), start, mask);
        out.expect_rounded();
      }
      Twins sums(kRowCount, width, 3);
      aggregate(a, source.half(), {1, kRowCount}, sums.full(), initial.full(), mask);
      EXPECT_EQ(std::vector<float>(sums.floats.begin() + (width + 3), sums.floats.end()),
                std::vector<float>(out.floats.begin() + (width + 3), out.floats.end()));
    }
  }
}

TEST_P(BFloat16Rows, Dropout) {
  for (const size_t width : kRowWidths) {
    Twins in(kRowCount, width, 1), out(kRowCount, width, 2);
    const Bits drawn(kRowCount, width);
    for (const DropoutMask& mask : {DropoutMask(), drawn.mask}) {
      apply_dropout(mask, {2, kRowCount}, in.full(), out.full());
      apply_dropout(mask, {2, kRowCount}, in.half(), out.half());
      out.expect_rounded();
      apply_dropout(mask, {2, kRowCount}, in.full(), out.half());
      out.expect_rounded();
      std::vector<float> wide(out.floats.size(), -1.0f);
      const Matrix widened(wide.data(), kRowCount, width, out.full().stride);
      apply_dropout(mask, {2, kRowCount}, in.half(), widened);
      for (size_t r = 2; r < kRowCount; ++r)
        for (size_t c = 0; c < width; ++c) ASSERT_EQ(widened.row(r)[c], out.full().row(r)[c]);
    }
    apply_dropout(drawn.mask, {0, kRowCount}, in.full(), out.full());
    apply_dropout(drawn.mask, {0, kRowCount}, in.half(), in.half());  // in place
    std::vector<float> rows = in.floats;                              // and where the float32 row begins
    const HalfMatrix begun(reinterpret_cast<BFloat16*>(rows.data()), kRowCount, width, 2 * in.full().stride);
    apply_dropout(drawn.mask, {0, kRowCount}, Matrix(rows.data(), kRowCount, width, in.full().stride), begun);
    for (size_t r = 0; r < kRowCount; ++r)
      for (size_t c = 0; c < width; ++c) {
        ASSERT_EQ(in.half().row(r)[c].bits, to_bfloat16(out.full().row(r)[c]).bits);
        ASSERT_EQ(begun.row(r)[c].bits, to_bfloat16(out.full().row(r)[c]).bits);
      }
  }
}

TEST_P(BFloat16Rows, Gather) {
  const std::vector<uint32_t> ids{5, 0, 11, 5, 3, 9, 1, 2, 4};
  for (const size_t width : kRowWidths) {
    Random random(6, Purpose::kTest);
    std::vector<float> floats(12 * width), widened(12 * width);
    std::vector<BFloat16> halves(12 * width);
    std::vector<uint16_t> binary16(12 * width);
    for (size_t i = 0; i < floats.size(); ++i) {
      floats[i] = random.normal();
      halves[i] = to_bfloat16(floats[i]);
      widened[i] = to_float(halves[i]);
      binary16[i] = static_cast<uint16_t>(random.below(0x7C00) | random.below(2) << 15);  // finite
    }
    Twins out(kRowCount, width, 2);
    const Bits drawn(kRowCount, width);
    for (const DropoutMask& mask : {DropoutMask(), drawn.mask}) {
      const auto expect_same = [&](const auto& full, const auto& half) {
        gather_rows(full.data(), ids.data(), {1, kRowCount}, mask, out.full());
        gather_rows(half.data(), ids.data(), {1, kRowCount}, mask, out.half());
        out.expect_rounded();
      };
      expect_same(floats, floats);
      expect_same(widened, halves);
      expect_same(binary16, binary16);
      gather_rows(halves.data(), ids.data(), {1, kRowCount}, mask, out.full());
      gather_rows(widened.data(), ids.data(), {1, kRowCount}, mask, out.half());
      out.expect_rounded();
    }
  }
}

TEST_P(BFloat16Rows, Activation) {
  for (const size_t width : kRowWidths) {
    if (width < 3) continue;  // a row of one is its own mean
    Twins z(kRowCount, width, 1), residual(kRowCount, width, 2), out(kRowCount, width, 3),
        gradient(kRowCount, width, 4);
    const Numbers scale(width, 1), offset(width, 2);
    Numbers mean(kRowCount, 3), deviation(kRowCount, 4);
    for (const LayerNorm& norm : {LayerNorm(), LayerNorm{scale.values.data(), offset.values.data(), mean.values.data(),
                                                         deviation.values.data()}}) {
      for (const bool adds : {false, true}) {
        activate({1, kRowCount}, z.full(), norm, adds ? ConstRows(residual.full()) : ConstRows(), out.full());
        activate({1, kRowCount}, z.full(), norm, adds ? ConstRows(residual.half()) : ConstRows(), out.half());
        out.expect_rounded();
      }
      std::vector<float> sums(2 * width), half_sums(2 * width), rows = z.floats;
      activate_backward({1, kRowCount}, gradient.full(), norm, z.full(), out.full(), sums.data(), sums.data() + width);
      const size_t stride = z.full().stride;
      const HalfMatrix begun(reinterpret_cast<BFloat16*>(rows.data()), kRowCount, width, 2 * stride);
      activate_backward({1, kRowCount}, gradient.half(), norm, Matrix(rows.data(), kRowCount, width, stride), begun,
                        half_sums.data(), half_sums.data() + width);
      EXPECT_EQ(sums, half_sums);
      for (size_t r = 1; r < kRowCount; ++r)
        for (size_t c = 0; c < width; ++c) ASSERT_EQ(begun.row(r)[c].bits, to_bfloat16(out.full().row(r)[c]).bits);
    }
  }
}

TEST_P(BFloat16Rows, BatchNorm) {
  for (const size_t width : kRowWidths) {
    Twins z(kRowCount, width, 1), residual(kRowCount, width, 2), out(kRowCount, width, 3),
        gradient(kRowCount, width, 4);
    const Numbers mean(width, 1), deviation(width, 2), scale(width, 3), offset(width, 4);
    const kernels::BatchNorm norm{mean.values.data(), deviation.values.data(), scale.values.data(),
                                  offset.values.data()};
    for (const bool adds : {false, true}) {
      normalise_columns({1, kRowCount}, z.full(), norm, adds ? ConstRows(residual.full()) : ConstRows(), out.full());
      normalise_columns({1, kRowCount}, z.full(), norm, adds ? ConstRows(residual.half()) : ConstRows(), out.half());
      out.expect_rounded();
    }
    std::vector<float> sums(2 * width), half_sums(2 * width), rows = z.floats;
    add_norm_gradients({1, kRowCount}, gradient.full(), norm, z.full(), sums.data(), sums.data() + width);
    add_norm_gradients({1, kRowCount}, gradient.half(), norm, z.full(), half_sums.data(), half_sums.data() + width);
    EXPECT_EQ(sums, half_sums);
    normalise_columns_backward({1, kRowCount}, gradient.full(), norm, sums.data(), sums.data() + width, z.full(),
                               out.full());
    const size_t stride = z.full().stride;
    const HalfMatrix begun(reinterpret_cast<BFloat16*>(rows.data()), kRowCount, width, 2 * stride);
    normalise_columns_backward({1, kRowCount}, gradient.half(), norm, sums.data(), sums.data() + width,
                               Matrix(rows.data(), kRowCount, width, stride), begun);
    for (size_t r = 1; r < kRowCount; ++r)
      for (size_t c = 0; c < width; ++c) ASSERT_EQ(begun.row(r)[c].bits, to_bfloat16(out.full().row(r)[c]).bits);
  }
}

TEST_P(BFloat16Rows, ColumnSums) {
  for (const size_t width : kRowWidths) {
    Twins m(kRowCount, width, 1);
    std::vector<float> full(width, 1), half(width, 1);
    add_column_sums({2, kRowCount}, m.full(), full.data());
    add_column_sums({2, kRowCount}, m.half(), half.data());
    EXPECT_EQ(half, full);
  }
}

// Infinities, numbers that are none, ties and the largest numbers, through a kernel that copies.
TEST_P(BFloat16Rows, RoundingIsThatOfOneNumber) {
  constexpr uint32_t kPatterns[] = {0x7F800000u, 0xFF800000u, 0x7F800001u, 0x7FFFFFFFu, 0x3F808000u, 0x3F818000u,
                                    0x7F7FFFFFu, 0xFF7FFFFFu, 0x00000001u, 0x80008000u, 0x3F80FFFFu, 0};
  std::vector<float> values;
  for (size_t i = 0; i < 40; ++i) values.push_back(std::bit_cast<float>(kPatterns[i % std::size(kPatterns)]));
  std::vector<BFloat16> rounded(values.size());
  apply_dropout({}, {0, 1}, ConstMatrix(values.data(), 1, values.size()), HalfMatrix(rounded.data(), 1, values.size()));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(rounded[i].bits, to_bfloat16(values[i]).bits) << i;
}

std::vector<int64_t> targets_here() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Simd, BFloat16Rows, testing::ValuesIn(targets_here()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace cgcn::kernels
