// What a user chooses about the network, and what the data decide.
#pragma once

#include <cstdint>

#include "common/options.h"
#include "graph/normalisation.h"

namespace cgcn {

// Where the logits come from: the last convolution, or a dense layer on its rows brought to length 1 (GraphSAGE).
enum class HeadKind { kConvolution, kDense };
// What dropout is applied to: a layer's input after aggregation, or the embeddings before it.
enum class DropoutPlace { kAfter, kBefore };

enum class ConvolutionForm { kConcat, kPlain };  // [N(A)H, H]·W, or N(A)H·W
// Where LayerNorm and ReLU stand: behind a hidden layer's product, or in front of every convolution that has a layer
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
  bool layer_norm = true;
  NormPlace norm_place = NormPlace::kAfter;
  bool residual = false;
  bool bias = false;
  float dropout = 0.2f;
  DropoutPlace dropout_place = DropoutPlace::kAfter;
  HeadKind head = HeadKind::kConvolution;

  void list_options(OptionList& list);
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
