#include "nn/adam.h"

#include <cmath>

#include "common/memory.h"
#include "nn/parameter_runs.h"

namespace cgcn {
namespace {

// Whether a parameter belongs to the layer that takes the features: "layer1.bias" does as "layer1.weight" does.
bool is_of_first_layer(const Model& model, const Parameter& parameter) {
  const std::string& first = model.parameters().front().name;
  return parameter.name.starts_with(first.substr(0, first.find('.') + 1));
}

}  // namespace

Adam::Adam(const OptimiserOptions& options, const Model& model) : options_(options) {
  for (Buffer<float>& moment : moments_) {
    moment = Buffer<float>(model.values().size());
    prefer_huge_pages(moment.data(), moment.size() * sizeof(float));
    moment.fill(0);
  }
}

void Adam::step(Model& model, float learning_rate, float gradient_scale) {
  ++steps_;
  const auto t = static_cast<double>(steps_);
  kernels::AdamCoefficients c{options_.beta1, options_.beta2, options_.epsilon};
  c.gradient_scale = gradient_scale;
  c.step_size = static_cast<float>(learning_rate / (1 - std::pow(double{options_.beta1}, t)));
  c.second_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(double{options_.beta2}, t)));
  const std::span<float> values = model.values(), gradients = model.gradients();
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const Parameter& p = model.parameters()[i];
    if (!p.is_learnt()) continue;
    const bool decays = options_.decay_scope == DecayScope::kAll || is_of_first_layer(model, p);
    set_decay(decays ? options_.weight_decay : 0, learning_rate, c);
    const ParameterRuns runs(p, options_.dense ? TouchedRows{} : model.touched_rows(i));
    runs.for_each([&](size_t, uint64_t offset, size_t size) {
      kernels::adam_step(c, size, &gradients[offset], &values[offset], &moments_[0][offset], &moments_[1][offset]);
    });
  }
}

void Adam::set_decay(float rate, float, kernels::AdamCoefficients& coefficients) const {
  coefficients.weight_decay = rate;
}

void AdamW::set_decay(float rate, float learning_rate, kernels::AdamCoefficients& coefficients) const {
  coefficients.value_scale = 1 - learning_rate * rate;
}

}  // namespace cgcn
