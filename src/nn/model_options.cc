#include "nn/model_options.h"

namespace cgcn {
namespace {

const std::initializer_list<std::pair<const char*, NormalisationKind>> kNormalisations = {
    {"mean", NormalisationKind::kMean},
    {"mean+identity", NormalisationKind::kMeanIdentity},
    {"self", NormalisationKind::kSelf},
    {"self+identity", NormalisationKind::kSelfIdentity},
    {"self+diagonal", NormalisationKind::kSelfDiagonal},
    {"symmetric", NormalisationKind::kSymmetric},
    {"sum", NormalisationKind::kSum}};

}  // namespace

void ModelOptions::list_options(OptionList& list) {
  list.begin_group("Model");
  list.add("layers", &layers, "graph convolutions L").range(1, 64).value("L").common();
  list.add("hidden", &hidden, "width F of the hidden layers").range(1, 65536).value("F").common();
  list.add_choice("conv", &convolution, {{"concat", ConvolutionForm::kConcat}, {"plain", ConvolutionForm::kPlain}},
                  "concat: [N(A)H, H]·W; plain: N(A)H·W");
  list.add_choice("normalisation", &normalisation, kNormalisations, "N(A) of the batch's links, paper section 3.3");
  list.add("lambda", &lambda, "weight of the diagonal in self+diagonal (paper eq. 11)").range(0, 1000);
  list.add_choice("input-normalisation", &input_normalisation, kNormalisations,
                  "N(A) of the first layer's A·X, where it takes that");
  list.add("input-projection", &input_projection,
           "a linear layer of width F before the first convolution, which then aggregates by the batch's edges");
  list.add("layer-norm", &layer_norm, "LayerNorm on the hidden layers");
  list.add_choice(
      "norm-place", &norm_place, {{"after", NormPlace::kAfter}, {"before", NormPlace::kBefore}},
      "LayerNorm and ReLU after each hidden convolution, or before each one but the first; differs with --residual");
  list.add("residual", &residual, "add a hidden layer's input to its output, in layers 2 … L-1 (paper eq. 8)");
  list.add("bias", &bias, "a bias in every layer");
  list.add("dropout", &dropout, "share of every layer's input that is dropped in training").range(0, 0.99).common();
  list.add_choice("dropout-place", &dropout_place, {{"after", DropoutPlace::kAfter}, {"before", DropoutPlace::kBefore}},
                  "drop parts of [N(A)H, H], or of H before it is aggregated");
  list.add_choice("head", &head, {{"convolution", HeadKind::kConvolution}, {"dense", HeadKind::kDense}},
                  "logits from the last convolution, or from a dense layer on its L2-normalised rows (GraphSAGE)");
}

}  // namespace cgcn
