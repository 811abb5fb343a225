#include "nn/feature_product.h"

#include "common/buffer.h"
#include "common/threads.h"
#include "kernels/gemm.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;

namespace {

// Rows of a product that are computed at a time; fixed, so that the cut does not depend on threads.
constexpr size_t kProductRows = 512;

// z = rows begin … end of the features · weight + keep·z. keep is 0 (z need not be initialised) or 1.
void add_feature_product(const FeatureMatrix& features, NodeId begin, NodeId end, ConstMatrix weight, Matrix z,
                         float keep) {
  const size_t rows = end - begin;
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      multiply(ConstMatrix(features.dense32().data(), features.rows(), weight.rows).rows_from(begin, end), weight, z,
               keep);
      return;
    case FeatureMatrix::Kind::kDense16:
    case FeatureMatrix::Kind::kDenseBFloat16: {
      Buffer<float> converted(rows * weight.rows);
      for (NodeId v = begin; v < end; ++v) features.copy_row(v, &converted[(v - begin) * weight.rows]);
      multiply(ConstMatrix(converted.data(), rows, weight.rows), weight, z, keep);
      return;
    }
    case FeatureMatrix::Kind::kSparse: {
      const SparseView view{static_cast<uint32_t>(rows), features.columns(), features.sparse_offsets().data() + begin,
                            features.sparse_columns().data(), features.sparse_values().data()};
      kernels::aggregate(view, weight, {0, rows}, z, keep != 0 ? ConstMatrix(z) : ConstMatrix());
      return;
    }
    case FeatureMatrix::Kind::kIdentity:
      for (NodeId v = begin; v < end; ++v)
        for (size_t c = 0; c < z.columns; ++c) {
          float& value = z.row(v - begin)[c];
          value = (keep != 0 ? value : 0) + weight.row(v)[c];
        }
  }
}

}  // namespace

void multiply_features(const Linear& linear, const FeatureMatrix& left, const FeatureMatrix* right, NodeId first,
                       Matrix z) {
  const size_t in = right != nullptr ? linear.in() / 2 : linear.in();
  parallel_blocks(z.rows, kProductRows, [&](size_t block, size_t block_end) {
    const auto begin = static_cast<NodeId>(first + block), end = static_cast<NodeId>(first + block_end);
    const Matrix rows = z.rows_from(block, block_end);
    add_feature_product(left, begin, end, linear.weight().rows_from(0, in), rows, linear.begin_tile(rows, 0));
    if (right != nullptr) add_feature_product(*right, begin, end, linear.weight().rows_from(in, linear.in()), rows, 1);
  });
}

}  // namespace cgcn
