#include "nn/feature_product.h"

#include "common/buffer.h"
#include "common/error.h"
#include "kernels/dropout.h"
#include "kernels/gemm.h"
#include "kernels/row_buffer.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstHalfMatrix;
using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::Precision;
using kernels::Rows;

namespace {

// z = rows begin … end of the features · weight + the bias of `first` (z need not be initialised), or + z if there is
// none.
void add_feature_product(const FeatureMatrix& features, NodeId begin, NodeId end, ConstMatrix weight,
                         const Linear* first, Matrix z) {
  const size_t rows = end - begin;
  const auto multiply_rows = [&](ConstMatrix dense) {
    if (first != nullptr)
      first->multiply_first(dense, weight, 0, z);
    else
      multiply(dense, weight, z, 1);
  };
  const auto begin_rows = [&] { return first == nullptr || first->begin_tile(z, 0) != 0; };
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      return multiply_rows(ConstMatrix(features.dense32().data(), features.rows(), weight.rows).rows_from(begin, end));
    case FeatureMatrix::Kind::kDense16:
    case FeatureMatrix::Kind::kDenseBFloat16: {
      Buffer<float> converted(rows * weight.rows);
      for (NodeId v = begin; v < end; ++v) features.copy_row(v, &converted[(v - begin) * weight.rows]);
      return multiply_rows({converted.data(), rows, weight.rows});
    }
    case FeatureMatrix::Kind::kSparse: {
      const SparseView view{static_cast<uint32_t>(rows), features.columns(), features.sparse_offsets().data() + begin,
                            features.sparse_columns().data(), features.sparse_values().data()};
      kernels::aggregate(view, weight, {0, rows}, z, begin_rows() ? ConstMatrix(z) : ConstMatrix());
      return;
    }
    case FeatureMatrix::Kind::kIdentity: {
      const bool begun = begin_rows();
      for (NodeId v = begin; v < end; ++v)
        for (size_t c = 0; c < z.columns; ++c) {
          float& value = z.row(v - begin)[c];
          value = (begun ? value : 0) + weight.row(v)[c];
        }
    }
  }
}

// Rows begin … end of dense features, rounded.
void round_features(const FeatureMatrix& features, NodeId begin, NodeId end, Rows out) {
  const size_t rows = end - begin, first = size_t{begin} * out.columns;
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      return copy_rows(ConstMatrix(features.dense32().data() + first, rows, out.columns), out);
    case FeatureMatrix::Kind::kDenseBFloat16:
      return copy_rows(ConstHalfMatrix(features.dense_bfloat16().data() + first, rows, out.columns), out);
    default: {
      CGCN_CHECK(features.is_dense());
      Buffer<float> row(out.columns);
      for (NodeId v = begin; v < end; ++v) {
        features.copy_row(v, row.data());
        copy_rows(ConstMatrix(row.data(), 1, out.columns), out.rows_from(v - begin, v - begin + 1));
      }
    }
  }
}

void multiply_rounded(const Linear& linear, const FeatureRows& features, const BFloat16* packed, Matrix z) {
  const size_t in = features.right != nullptr ? linear.in() / 2 : linear.in();
  const auto begin = features.first, end = static_cast<NodeId>(features.first + z.rows);
  kernels::RowBuffer c(z.rows, linear.in(), Precision::kBFloat16);
  round_features(features.left, begin, end, c.rows().columns_from(0, in));
  if (features.right != nullptr) round_features(*features.right, begin, end, c.rows().columns_from(in, linear.in()));
  linear.infer(c.rows().halves(), packed, z);
}

}  // namespace

void multiply_features(const Linear& linear, const FeatureRows& rows, const BFloat16* packed, Matrix z) {
  const size_t in = rows.right != nullptr ? linear.in() / 2 : linear.in();
  if (packed != nullptr) return multiply_rounded(linear, rows, packed, z);
  const auto begin = rows.first, end = static_cast<NodeId>(rows.first + z.rows);
  add_feature_product(rows.left, begin, end, linear.weight().rows_from(0, in), &linear, z);
  if (rows.right != nullptr)
    add_feature_product(*rows.right, begin, end, linear.weight().rows_from(in, linear.in()), nullptr, z);
}

}  // namespace cgcn
