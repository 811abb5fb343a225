#include "nn/feature_product.h"

#include "common/buffer.h"
#include "kernels/gemm.h"
#include "kernels/spmm.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;

void add_feature_product(const FeatureMatrix& features, NodeId begin, NodeId end, ConstMatrix weight, Matrix z,
                         float keep) {
  const size_t rows = end - begin;
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      multiply(ConstMatrix(features.dense32().data(), features.rows(), weight.rows).rows_from(begin, end), weight, z,
               keep);
      return;
    case FeatureMatrix::Kind::kDense16: {
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

}  // namespace cgcn
