// Sparse times dense: aggregation over neighbours, forward with the batch's matrix and backward with its transpose.
#pragma once

#include "common/sparse_view.h"
#include "kernels/bfloat16.h"
#include "kernels/dropout.h"

namespace cgcn::kernels {

// out.row(r) = mask(r) ∘ (initial.row(r) + Σ_j a_rj · source.row(j)) for r in rows. Rows beyond initial.rows (all,
// if it is empty) begin at zero; an empty mask drops nothing. out may be initial; it may not overlap source. Sums are
// float32. Of a source in bfloat16, out is of either precision, and initial is of out's or float32.
void aggregate(const SparseView& a, ConstRows source, RowRange rows, Rows out, ConstRows initial = {},
               const DropoutMask& mask = {});

}  // namespace cgcn::kernels
