// The normalised adjacency matrices of the paper, sections 2 and 3.3, from rows of A with weights a_ij and degrees
// d_i = Σ_j a_ij of the (sub)graph at hand. Rows are not renormalised after a diagonal has been enhanced.
//
// Every kind is N_ij = s_i·a_ij off the diagonal (s_i·a_ij·s_j if symmetric), with a scale s_i that depends on d_i
// alone, and a diagonal of its own. A node without edges has a row of zeros, but for the diagonal that its kind adds.
#pragma once

#include <string>

#include "common/sparse_view.h"
#include "graph/csr_graph.h"

namespace cgcn {

enum class NormalisationKind {
  kMean,          // A' = D⁻¹A                                        eq. 1
  kMeanIdentity,  // A' + I                                           eq. 9 with A'
  kSelf,          // Ã = (D+I)⁻¹(A+I)                                 eq. 10
  kSelfIdentity,  // Ã + I                                            eq. 9 with Ã
  kSelfDiagonal,  // Ã + λ·diag(Ã)                                    eq. 11
  kSymmetric,     // (D+I)^-½ (A+I) (D+I)^-½                          Kipf and Welling
  kSum,           // A itself: the neighbour sum (the released code's first layer)
};

struct Normalisation {
  NormalisationKind kind = NormalisationKind::kMean;
  float lambda = 1;  // kSelfDiagonal only

  bool has_diagonal() const { return kind != NormalisationKind::kMean && kind != NormalisationKind::kSum; }
  // Whether columns are scaled as well as rows.
  bool scales_columns() const { return kind == NormalisationKind::kSymmetric; }
  // Whether the matrix equals its transpose for a symmetric A: then the backward pass needs no second copy.
  bool keeps_symmetry() const { return kind == NormalisationKind::kSymmetric || kind == NormalisationKind::kSum; }
  std::string name() const;  // "mean", "self+1*diag": part of cache keys

  float scale(double degree) const;                                 // s_i
  float diagonal(float scale, float self_weight) const;             // N_ii from s_i and a_ii (0 if there is no loop)
  float link(float scale, float other_scale, float weight) const {  // N_ij from s_i, s_j and a_ij
    return scales_columns() ? weight * (scale * other_scale) : scale * weight;
  }

  // N of a small matrix whose values are a_ij, in place; if it has a diagonal, every row has a place on it. reverse,
  // if not null: N_ji of each entry, for an A that equals its transpose.
  void normalise(const SparseView& a, const float* scales, float* values, float* reverse) const;
};

// d_v of the whole graph.
double weighted_degree(const CsrGraph& graph, NodeId v);

}  // namespace cgcn
