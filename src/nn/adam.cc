#include "nn/adam.h"

#include <atomic>
#include <cmath>

#include "common/memory.h"
#include "common/threads.h"
#include "kernels/adam_step.h"

namespace cgcn {
namespace {

constexpr size_t kBlockFloats = 1 << 14;

// The flat buffers' runs that cover a parameter, or its touched rows, in blocks for the threads.
class Runs {
 public:
  Runs(const Parameter& parameter, const TouchedRows& touched) : parameter_(parameter), touched_(touched) {}

  size_t blocks() const { return (count() + per_block() - 1) / per_block(); }

  // use(block, offset, size) for every run; runs of a block follow each other on one thread.
  template <class Use>
  void for_each(Use&& use) const {
    parallel_blocks(count(), per_block(), [&](size_t begin, size_t end) {
      const size_t block = begin / per_block();
      if (touched_.all) return use(block, parameter_.offset + begin, end - begin);
      for (size_t i = begin; i < end; ++i)
        use(block, parameter_.offset + uint64_t{touched_.rows[i]} * parameter_.columns, size_t{parameter_.columns});
    });
  }

 private:
  size_t count() const { return touched_.all ? parameter_.size() : touched_.rows.size(); }
  size_t per_block() const {
    return touched_.all ? kBlockFloats : std::max<size_t>(1, kBlockFloats / parameter_.columns);
  }
  const Parameter& parameter_;
  TouchedRows touched_;
};

}  // namespace

void AdamOptions::list_options(OptionList& list) {
  list.begin_group("Optimiser");
  list.add("beta1", &beta1, "Adam's decay of the gradient's mean").range(0, 0.999999);
  list.add("beta2", &beta2, "Adam's decay of the gradient's square").range(0, 0.9999999);
  list.add("epsilon", &epsilon, "Adam's ε").range(0, 1);
  list.add("weight-decay", &weight_decay, "L2 penalty, added to the gradient").range(0, 1);
  list.add_choice("decay-scope", &decay_scope, {{"all", DecayScope::kAll}, {"first-layer", DecayScope::kFirstLayer}},
                  "which parameters decay");
  list.add("dense-adam", &dense, "sparse features: step every row of the first weight, not only those a batch used");
}

Adam::Adam(const AdamOptions& options, const Model& model)
    : options_(options), first_(model.values().size()), second_(model.values().size()) {
  for (Buffer<float>* buffer : {&first_, &second_}) {
    prefer_huge_pages(buffer->data(), buffer->size() * sizeof(float));
    buffer->fill(0);
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
    const bool decays = options_.decay_scope == DecayScope::kAll || p.name.starts_with("layer1.");
    c.weight_decay = decays ? options_.weight_decay : 0;
    const Runs runs(p, options_.dense ? TouchedRows{} : model.touched_rows(i));
    runs.for_each([&](size_t, uint64_t offset, size_t size) {
      kernels::adam_step(c, size, &gradients[offset], &values[offset], &first_[offset], &second_[offset]);
    });
  }
}

double gradient_norm(const Model& model) {
  double total = 0;
  std::vector<double> sums;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const Runs runs(model.parameters()[i], model.touched_rows(i));
    sums.assign(runs.blocks(), 0);
    runs.for_each([&](size_t block, uint64_t offset, size_t size) {
      sums[block] += kernels::sum_of_squares(size, &model.gradients()[offset]);
    });
    for (const double sum : sums) total += sum;
  }
  return std::sqrt(total);
}

std::string first_not_finite(const Model& model) {
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    std::atomic<bool> finite = true;
    const Runs runs(model.parameters()[i], model.touched_rows(i));
    runs.for_each([&](size_t, uint64_t offset, size_t size) {
      if (!kernels::all_finite(size, &model.gradients()[offset])) finite = false;
    });
    if (!finite) return model.parameters()[i].name;
  }
  return {};
}

}  // namespace cgcn
