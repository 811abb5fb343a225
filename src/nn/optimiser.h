// How gradients become steps: the optimisers, over the flat parameter buffer, with gradient clipping and a check that
// names what is not finite.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/options.h"
#include "nn/model.h"

namespace cgcn {

enum class OptimiserKind { kAdam, kAdamW };
enum class DecayScope { kAll, kFirstLayer };

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::kAdam;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0;  // Adam: L2, added to the gradient as PyTorch's does; AdamW: taken off the weights
  DecayScope decay_scope = DecayScope::kAll;
  bool dense = false;  // sparse features: step every row, not only those that the batch used

  void list_options(OptionList& list);
};

class Optimiser {
 public:
  virtual ~Optimiser() = default;

  // One step on the model's gradients. gradient_scale multiplies them first (clipping, averaging). If the model
  // touches rows and dense is off, only those rows move, decay and change their state.
  virtual void step(Model& model, float learning_rate, float gradient_scale = 1) = 0;

  // The state, for checkpoints: how many steps were made, and named numbers for each parameter, laid out as
  // Model::values().
  struct State {
    std::string name;
    std::span<float> values;
  };
  virtual std::vector<State> state() = 0;
  uint64_t steps() const { return steps_; }
  void set_steps(uint64_t steps) { steps_ = steps; }
  uint64_t bytes();

 protected:
  uint64_t steps_ = 0;
};

// What the state of one would take, for a model that need only be planned.
uint64_t planned_optimiser_bytes(const OptimiserOptions& options, const Model& model);

// The one place where a kind becomes an optimiser.
std::unique_ptr<Optimiser> make_optimiser(const OptimiserOptions& options, const Model& model);

// ‖gradient‖₂ over all parameters (over the touched rows, if rows are touched).
double gradient_norm(const Model& model);

// The name of the first parameter whose gradient has a NaN or an infinity; empty if all are finite.
std::string first_not_finite(const Model& model);

}  // namespace cgcn
