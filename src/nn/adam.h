// Adam (Kingma and Ba, 2015) with L2 in the gradient, and AdamW (Loshchilov and Hutter, 2019), whose decay is apart:
//
//   m = β₁m + (1-β₁)g,  v = β₂v + (1-β₂)g²,  w -= lr · m̂ / (√v̂ + ε)
//   Adam: g has weight_decay·w in it;   AdamW: w is multiplied by 1 - lr·weight_decay first
#pragma once

#include <array>

#include "common/buffer.h"
#include "kernels/adam_step.h"
#include "nn/optimiser.h"

namespace cgcn {

class Adam : public Optimiser {
 public:
  Adam(const OptimiserOptions& options, const Model& model);
  // What its state will take; also of a planned model.
  static uint64_t planned_bytes(const Model& model) { return Moments().size() * model.value_bytes(); }

  void step(Model& model, float learning_rate, float gradient_scale = 1) override;
  std::vector<State> state() override { return {{"mean", moments_[0]}, {"square", moments_[1]}}; }

 protected:
  // How a parameter decays: by this rate, or not (0).
  virtual void set_decay(float rate, float learning_rate, kernels::AdamCoefficients& coefficients) const;

 private:
  using Moments = std::array<Buffer<float>, 2>;  // m and v, each as large as the weights

  OptimiserOptions options_;
  Moments moments_;
};

class AdamW final : public Adam {
 public:
  using Adam::Adam;

 protected:
  void set_decay(float rate, float learning_rate, kernels::AdamCoefficients& coefficients) const override;
};

}  // namespace cgcn
