#include "nn/aggregate.h"

#include "kernels/spmm.h"

namespace cgcn {

void aggregate_all(const SparseView& a, kernels::ConstRows source, kernels::ConstRows initial, kernels::Rows out) {
  for_strips(out, [&](kernels::RowRange rows, kernels::RowRange columns) {
    kernels::aggregate(a, columns_of(source, columns), rows, out.columns_from(columns.begin, columns.end),
                       columns_of(initial, columns));
  });
}

}  // namespace cgcn
