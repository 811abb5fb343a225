#include "graph/features.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/feature_reader.h"
#include "support.h"

namespace cgcn {
namespace {

// IEEE 754's definition, in double, for a finite half.
double value_of(Half bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, AllOfThemBecomeTheRightFloatAndComeBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<Half>(bits);
    const float wide = half_to_float(half);
    if ((bits & 0x7C00) != 0x7C00) {
      ASSERT_EQ(static_cast<double>(wide), value_of(half)) << bits;
      ASSERT_EQ(std::signbit(wide), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(float_to_half(wide), half) << bits;
    } else if ((bits & 0x3FF) == 0) {
      ASSERT_TRUE(std::isinf(wide));
      ASSERT_EQ(float_to_half(wide), half);
    } else {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(half_to_float(float_to_half(wide)))) << bits;
    }
  }
}

// Between each two neighbouring halves: just below the middle goes down, just above goes up, the middle to the even
// one.
TEST(Half, FloatsAreRoundedToTheNearestTiesToEven) {
  for (const uint32_t sign : {0u, 0x8000u})
    for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
      const auto low = static_cast<Half>(sign | bits), high = static_cast<Half>(low + 1);
      const auto middle = static_cast<float>((value_of(low) + value_of(high)) / 2);
      ASSERT_EQ(float_to_half(middle), bits % 2 == 0 ? low : high) << bits;
      ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), low) << bits;
      ASSERT_EQ(float_to_half(std::nextafter(middle, middle * 2)), high) << bits;
    }
  EXPECT_EQ(float_to_half(65519.99f), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(FeatureMatrix, KindsKnowTheirShapeAndRows) {
  const FeatureMatrix dense = FeatureMatrix::dense(std::vector<float>{1, 2, 3, 4, 5, 6}, 3);
  const FeatureMatrix half =
      FeatureMatrix::dense16(std::vector<Half>{0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600}, 3);
  for (const FeatureMatrix* matrix : {&dense, &half}) {
    EXPECT_EQ(matrix->rows(), 2u);
    EXPECT_EQ(matrix->columns(), 3u);
    EXPECT_EQ(matrix->num_entries(), 6u);
    std::vector<float> row(3);
    matrix->copy_row(1, row.data());
    EXPECT_EQ(row, (std::vector<float>{4, 5, 6}));
  }
  EXPECT_EQ(dense.stored_bytes(), 24u);
  EXPECT_EQ(half.stored_bytes(), 12u);

  const FeatureMatrix sparse = FeatureMatrix::sparse(std::vector<EdgeOffset>{0, 2, 2, 3},
                                                     std::vector<uint32_t>{1, 8, 0}, std::vector<float>{0.5f, 1, 2}, 9);
  EXPECT_EQ(sparse.rows(), 3u);
  EXPECT_EQ(sparse.columns(), 9u);
  EXPECT_EQ(sparse.num_entries(), 3u);
  EXPECT_TRUE(sparse.row_columns(1).empty());
  EXPECT_EQ(sparse.row_columns(2)[0], 0u);
  EXPECT_EQ(sparse.row_values(0)[1], 1);

  const FeatureMatrix identity = FeatureMatrix::identity(5);
  EXPECT_EQ(identity.rows(), 5u);
  EXPECT_EQ(identity.columns(), 5u);
  EXPECT_EQ(identity.stored_bytes(), 0u);
  EXPECT_FALSE(identity.is_dense());
}

TEST(FeatureMatrix, RowsDividedByTheirSums) {
  const FeatureMatrix dense = FeatureMatrix::dense(std::vector<float>{1, 3, 0, 0, -1, 1}, 2).with_normalised_rows();
  EXPECT_EQ(std::vector<float>(dense.dense32().begin(), dense.dense32().end()),
            (std::vector<float>{0.25f, 0.75f, 0, 0, -1, 1}));  // a sum of zero cannot be divided by
  const FeatureMatrix sparse = FeatureMatrix::sparse(std::vector<EdgeOffset>{0, 2, 2, 3},
                                                     std::vector<uint32_t>{0, 4, 2}, std::vector<float>{1, 1, 5}, 5)
                                   .with_normalised_rows();
  EXPECT_EQ(std::vector<float>(sparse.sparse_values().begin(), sparse.sparse_values().end()),
            (std::vector<float>{0.5f, 0.5f, 1}));
  const FeatureMatrix half = FeatureMatrix::dense16(std::vector<Half>{float_to_half(2), float_to_half(6)}, 2);
  EXPECT_EQ(half.with_normalised_rows().dense_row(0)[1], 0.75f);
  EXPECT_EQ(FeatureMatrix::identity(3).with_normalised_rows().kind(), FeatureMatrix::Kind::kIdentity);
}

TEST(FeatureReader, ReadsRowsAgainIntoTheSameMemory) {
  const FeatureMatrix dense = FeatureMatrix::dense(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, 2);
  const FeatureMatrix half = FeatureMatrix::dense16(
      std::vector<Half>{float_to_half(1), float_to_half(2), float_to_half(3), float_to_half(4)}, 1);
  const FeatureMatrix sparse =
      FeatureMatrix::sparse(std::vector<EdgeOffset>{0, 1, 1, 4, 6}, std::vector<uint32_t>{0, 1, 2, 3, 0, 3},
                            std::vector<float>{1, 2, 3, 4, 5, 6}, 4);
  FeatureReader::Rows rows;
  for (const std::vector<NodeId>& ids : {std::vector<NodeId>{2}, {3, 0, 1, 2}, {1, 2}, {0, 2, 3, 3, 2}}) {
    for (const FeatureMatrix* matrix : {&dense, &half}) {
      FeatureReader(*matrix).read(ids, rows);
      ASSERT_EQ(rows.matrix.rows(), ids.size());
      for (NodeId i = 0; i < ids.size(); ++i) {
        float read[2], expected[2];
        rows.matrix.copy_row(i, read);
        matrix->copy_row(ids[i], expected);
        EXPECT_TRUE(std::equal(read, read + matrix->columns(), expected));
      }
    }
    FeatureReader(sparse).read(ids, rows);
    ASSERT_EQ(rows.matrix.rows(), ids.size());
    for (NodeId i = 0; i < ids.size(); ++i) {
      const auto columns = rows.matrix.row_columns(i), own = sparse.row_columns(ids[i]);
      const auto values = rows.matrix.row_values(i), own_values = sparse.row_values(ids[i]);
      EXPECT_TRUE(std::equal(columns.begin(), columns.end(), own.begin(), own.end()));
      EXPECT_TRUE(std::equal(values.begin(), values.end(), own_values.begin(), own_values.end()));
    }
  }
}

// More numbers than 32 bits count. The pages between are never touched and take no memory.
TEST(Features, RowsBeyondFourBillionNumbersAreRead) {
  constexpr NodeId kRows = 40'000'000;
  constexpr uint32_t kColumns = 128;
  const size_t size = size_t{kRows} * kColumns, bytes = size * sizeof(Half);
  static_assert(uint64_t{kRows} * kColumns > UINT32_MAX);
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "no address space for it";
  auto* const values = static_cast<Half*>(mapped);
  for (uint32_t c = 0; c < kColumns; ++c) values[size - kColumns + c] = float_to_half(static_cast<float>(c + 1));
  {
    const FeatureMatrix features =
        FeatureMatrix::dense16({std::span<const Half>(values, size), std::shared_ptr<const void>()}, kColumns);
    EXPECT_EQ(features.rows(), kRows);
    std::vector<float> row(kColumns);
    features.copy_row(kRows - 1, row.data());
    for (uint32_t c = 0; c < kColumns; ++c) EXPECT_EQ(row[c], static_cast<float>(c + 1));
  }
  ::munmap(mapped, bytes);
}

}  // namespace
}  // namespace cgcn
