// Sparse times dense: aggregation over neighbours, forward with the batch's matrix and backward with its transpose.
#pragma once

#include "common/sparse_view.h"
#include "kernels/dropout.h"
#include "kernels/matrix.h"

namespace cgcn::kernels {

// out.row(r) = mask(r) ∘ (initial.row(r) + Σ_j a_rj · source.row(j)) for r in rows. Rows beyond initial.rows (all,
// if it is empty) begin at zero; an empty mask drops nothing. out may be initial; it may not overlap source.
void aggregate(const SparseView& a, ConstMatrix source, RowRange rows, Matrix out, ConstMatrix initial = {},
               const DropoutMask& mask = {});

}  // namespace cgcn::kernels
