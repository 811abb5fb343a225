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
  list.add("layers", &layers, "number of graph convolutions").range(1, 64).value("L").common();
  list.add("hidden", &hidden, "width of the hidden layers").range(1, 65536).value("F").common();
  list.add_choice("conv", &convolution, {{"concat", ConvolutionForm::kConcat}, {"plain", ConvolutionForm::kPlain}},
                  "concat: [N(A)H, H]·W; plain: N(A)H·W");
  list.add_choice("normalisation", &normalisation, kNormalisations,
                  "normalisation N(A) of the batch's edges, paper section 3.3");
  list.add("lambda", &lambda, "weight of the diagonal in self+diagonal (paper eq. 11)").range(0, 1000);
  list.add_choice("input-normalisation", &input_normalisation, kNormalisations,
                  "normalisation of the precomputed A·X in the first layer");
  list.add("input-projection", &input_projection,
           "a linear layer before the first convolution, which then aggregates over the batch's edges");
  list.add("layer-norm", &layer_norm, "LayerNorm on the hidden layers");
  list.add("batch-norm", &batch_norm, "BatchNorm on the hidden layers instead, over the rows of each batch");
  list.add_choice(
      "norm-place", &norm_place, {{"after", NormPlace::kAfter}, {"before", NormPlace::kBefore}},
      "norm and ReLU after each hidden convolution, or before each one but the first; differs with --residual");
  list.add("residual", &residual, "residual connections around hidden layers of equal width (paper eq. 8)");
  list.add("initial-residual", &initial_residual, "GCNII's α: hidden layers aggregate (1-α)·N(A)H + α·H_0; 0: off")
      .range(0, 0.99);
  list.add("identity-mapping", &identity_mapping,
           "GCNII's λ: hidden weights are (1-β)·I + β·W, β = log(λ/l + 1); 0: off")
      .range(0, 10);
  list.add("bias", &bias, "a bias in every layer; a model of one layer has it in any case")
      .needs([this] { return !is_linear(); }, "--layers 1 has a bias in any case");
  list.add("dropout", &dropout, "dropout on every layer's input").range(0, 0.99).common();
  list.add("input-dropout", &input_dropout, "dropout on the features, the input of the first layer; -1: as --dropout")
      .range(-1, 0.99);
  list.add_choice("dropout-place", &dropout_place, {{"after", DropoutPlace::kAfter}, {"before", DropoutPlace::kBefore}},
                  "dropout on [N(A)H, H], or on H before aggregation");
  list.add_choice("head", &head,
                  {{"convolution", HeadKind::kConvolution}, {"dense", HeadKind::kDense}, {"linear", HeadKind::kLinear}},
                  "logits from the last convolution; a dense layer on its L2-normalised rows (as in GraphSAGE); a "
                  "linear layer behind "
                  "L hidden ones");
  list.add_choice("jumping", &jumping, {{"none", Jumping::kNone}, {"concat", Jumping::kConcat}, {"max", Jumping::kMax}},
                  "jumping knowledge: a linear head takes all layers' rows, concatenated or their maximum");
  list.add_choice(
      "precision", &precision, {{"float32", kernels::Precision::kFloat32}, {"bfloat16", kernels::Precision::kBFloat16}},
      "of embeddings and products, in training and in its evaluations; bfloat16 takes half the memory for features "
      "and embeddings, weights stay float32");
}

}  // namespace cgcn
