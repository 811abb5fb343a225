// What a user chooses about the network, and what the data decide.
#pragma once

#include <cstdint>

#include "common/options.h"
#include "graph/normalisation.h"
#include "kernels/bfloat16.h"

namespace cgcn {

// Where the logits come from: the last convolution; a dense layer on its rows brought to length 1 (GraphSAGE); or a
// linear layer behind L hidden ones.
enum class HeadKind { kConvolution, kDense, kLinear };
// What a linear head takes: the rows of the last layer, or those of all, concatenated or the largest of each
// column (jumping knowledge).
enum class Jumping { kNone, kConcat, kMax };
// What dropout is applied to: a layer's input after aggregation, or the embeddings before it.
enum class DropoutPlace { kAfter, kBefore };

enum class ConvolutionForm { kConcat, kPlain };  // [N(A)H, H]·W, or N(A)H·W
enum class NormKind { kNone, kLayer, kBatch };
// Where the norm and ReLU stand: behind a hidden layer's product, or in front of every convolution that has a layer
// below it.
enum class NormPlace { kAfter, kBefore };

struct ModelOptions {
  uint32_t layers = 3;
  uint32_t hidden = 256;
  ConvolutionForm convolution = ConvolutionForm::kConcat;
  NormalisationKind normalisation = NormalisationKind::kMean;
  float lambda = 1;
  NormalisationKind input_normalisation = NormalisationKind::kMean;  // of the precomputed A·X of layer 1
  bool input_projection = false;
  bool layer_norm = true, batch_norm = false;  // batch_norm: instead of the other
  NormPlace norm_place = NormPlace::kAfter;
  bool residual = false;
  bool bias = false;
  float dropout = 0.2f;
  float input_dropout = -1;  // of the features; -1: as dropout
  DropoutPlace dropout_place = DropoutPlace::kAfter;
  HeadKind head = HeadKind::kConvolution;
  Jumping jumping = Jumping::kNone;
  float initial_residual = 0;  // α of GCNII
  float identity_mapping = 0;  // λ of GCNII; β_l = log(λ / l + 1)
  kernels::Precision precision =
      kernels::Precision::kFloat32;  // workspace.h and inference_stage.h say what is in which

  void list_options(OptionList& list);
  // One layer without norm, head or projection is a linear model, and has the intercept of one.
  bool is_linear() const { return layers == 1 && head_kind() == HeadKind::kConvolution && !input_projection; }
  bool has_bias() const { return bias || is_linear(); }
  float first_dropout() const { return input_dropout < 0 ? dropout : input_dropout; }
  NormKind norm() const { return batch_norm ? NormKind::kBatch : layer_norm ? NormKind::kLayer : NormKind::kNone; }
  HeadKind head_kind() const { return jumping != Jumping::kNone ? HeadKind::kLinear : head; }
  // Convolutions that are followed by another or by a linear head: the hidden ones.
  bool is_last(uint32_t layer) const { return layer == layers && head_kind() != HeadKind::kLinear; }
  Normalisation layer_normalisation() const { return {normalisation, lambda}; }
  Normalisation product_normalisation() const { return {input_normalisation, lambda}; }  // of a precomputed A·X
};

// What the data decide.
struct ModelShape {
  uint32_t input_columns = 0;  // of X
  bool sparse_input = false;   // sparse or identity features
  uint32_t num_classes = 0;
  bool multi_label = false;
  bool regression = false;  // one output, a number
};

}  // namespace cgcn
