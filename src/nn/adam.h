// The optimiser: Adam over the flat parameter buffer, with gradient clipping and a check that names what is not finite.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/buffer.h"
#include "common/options.h"
#include "nn/model.h"

namespace cgcn {

enum class DecayScope { kAll, kFirstLayer };

struct AdamOptions {
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0;  // L2, added to the gradient as PyTorch's Adam does
  DecayScope decay_scope = DecayScope::kAll;
  bool dense = false;  // sparse features: step every row, not only those that the batch used

  void list_options(OptionList& list);
};

class Adam {
 public:
  Adam(const AdamOptions& options, const Model& model);

  // One step on the model's gradients. gradient_scale multiplies them first (clipping, averaging).
  // Where the model touches rows and dense is off, only those rows move, and their moments decay only then.
  void step(Model& model, float learning_rate, float gradient_scale = 1);

  // The state, for checkpoints: as long as Model::values(), same layout.
  uint64_t steps() const { return steps_; }
  void set_steps(uint64_t steps) { steps_ = steps; }
  std::span<float> first_moments() { return first_; }
  std::span<const float> first_moments() const { return first_; }
  std::span<float> second_moments() { return second_; }
  std::span<const float> second_moments() const { return second_; }
  uint64_t bytes() const { return 4 * (first_.size() + second_.size()); }

 private:
  AdamOptions options_;
  uint64_t steps_ = 0;
  Buffer<float> first_, second_;
};

// ‖gradient‖₂ over all parameters (over the touched rows, where rows are touched).
double gradient_norm(const Model& model);

// The name of the first parameter whose gradient has a NaN or an infinity; empty where all are finite.
std::string first_not_finite(const Model& model);

}  // namespace cgcn
