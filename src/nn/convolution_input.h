// What a convolution multiplies by its weight, a component of layers: C = D([N(A)·H, H]), or D(N(A)·H) in the plain
// form, and the dropout D with its masks.
//
// D drops values of C, or of H before it is aggregated (DropoutPlace). A·X that is computed ahead can only be dropped
// as values of C.
#pragma once

#include "nn/model_options.h"
#include "nn/step.h"
#include "nn/workspace.h"

namespace cgcn {

class ConvolutionInput {
 public:
  // number: of the layer. in: columns of H.
  ConvolutionInput(uint32_t number, size_t in, const ModelOptions& options);

  bool concat() const { return concat_; }
  size_t columns() const { return concat_ ? 2 * in_ : in_; }  // of C

  // rows: of C; sources: of H, if it is aggregated.
  void plan(Workspace& workspace, size_t rows, size_t sources);

  // D before the aggregation, in place; nothing if it comes after. And the same of the gradient.
  void drop_sources(const Step& step, kernels::Rows h) const;
  void drop_sources_backward(const Step& step, kernels::Rows gradient) const;

  // C = D([A·H + term, H]); no term: zero.
  void aggregate(const Step& step, const SparseView& a, kernels::ConstRows h, kernels::ConstRows term,
                 kernels::Rows c) const;
  // C = D([rows of `left`, rows of `right`]), the batch's rows of dense features; `right` is unused in the plain form.
  void gather(const Step& step, const FeatureMatrix& left, const FeatureMatrix& right, kernels::Rows c) const;

  // Of C's left or right half; empty if nothing of it is dropped after the aggregation.
  bool drops_after(const Step& step) const { return step.dropout > 0 && place_ == DropoutPlace::kAfter; }
  kernels::DropoutMask mask_after(const Step& step, bool right) const;
  uint32_t stream(bool right = false) const;

 private:
  kernels::DropoutMask mask(const Step& step, uint8_t* bits) const;

  uint32_t number_;
  size_t in_;
  bool concat_, drops_;
  DropoutPlace place_;
  uint8_t *left_bits_ = nullptr, *right_bits_ = nullptr, *source_bits_ = nullptr;
};

// The options as the layer that takes the features has them.
ModelOptions with_input_dropout(ModelOptions options);

// The batch's rows of dense features.
void gather_features(const FeatureMatrix& features, const Batch& batch, kernels::Rows out);

}  // namespace cgcn
