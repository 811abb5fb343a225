// Adam (Kingma and Ba, 2015) with L2 in the gradient, and AdamW (Loshchilov and Hutter, 2019), whose decay is apart:
//
//   m = β₁m + (1-β₁)g,  v = β₂v + (1-β₂)g²,  w -= lr · m̂ / (√v̂ + ε)
//   Adam: g has weight_decay·w in it;   AdamW: w is multiplied by 1 - lr·weight_decay first
#pragma once

#include "common/buffer.h"
#include "kernels/adam_step.h"
#include "nn/optimiser.h"

namespace cgcn {

class Adam : public Optimiser {
 public:
  static constexpr uint64_t kMoments = 2;  // numbers kept for each weight
  Adam(const OptimiserOptions& options, const Model& model);

  void step(Model& model, float learning_rate, float gradient_scale = 1) override;
  std::vector<State> state() override { return {{"mean", first_}, {"square", second_}}; }

 protected:
  // How a parameter decays: by this rate, or not (0).
  virtual void set_decay(float rate, float learning_rate, kernels::AdamCoefficients& coefficients) const;

 private:
  OptimiserOptions options_;
  Buffer<float> first_, second_;
};

class AdamW final : public Adam {
 public:
  using Adam::Adam;

 protected:
  void set_decay(float rate, float learning_rate, kernels::AdamCoefficients& coefficients) const override;
};

}  // namespace cgcn
