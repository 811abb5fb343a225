#include "nn/adam.h"

#include <atomic>
#include <cmath>

#include "common/memory.h"
#include "common/threads.h"
#include "kernels/adam_step.h"

namespace cgcn {
namespace {

constexpr size_t kBlockFloats = 1 << 14;

// Calls use(index, offset, size) for runs of the flat buffers that cover parameter p, or its touched rows.
template <class Use>
void for_each_run(const Parameter& p, const TouchedRows& touched, Use&& use) {
  if (touched.all) {
    parallel_blocks(p.size(), kBlockFloats,
                    [&](size_t begin, size_t end) { use(begin / kBlockFloats, p.offset + begin, end - begin); });
    return;
  }
  const size_t rows_per_block = std::max<size_t>(1, kBlockFloats / p.columns);
  parallel_blocks(touched.rows.size(), rows_per_block, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      use(begin / rows_per_block, p.offset + uint64_t{touched.rows[i]} * p.columns, size_t{p.columns});
  });
}

size_t count_blocks(const Parameter& p, const TouchedRows& touched) {
  const size_t floats = touched.all ? p.size() : touched.rows.size() * size_t{p.columns};
  return floats / std::min(kBlockFloats, floats + 1) + touched.rows.size() + 2;
}

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
    for_each_run(p, options_.dense ? TouchedRows{} : model.touched_rows(i), [&](size_t, uint64_t offset, size_t size) {
      kernels::adam_step(c, size, &gradients[offset], &values[offset], &first_[offset], &second_[offset]);
    });
  }
}

double gradient_norm(const Model& model) {
  double total = 0;
  std::vector<double> sums;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const Parameter& p = model.parameters()[i];
    const TouchedRows touched = model.touched_rows(i);
    sums.assign(count_blocks(p, touched), 0);
    for_each_run(p, touched, [&](size_t block, uint64_t offset, size_t size) {
      sums[block] += kernels::sum_of_squares(size, &model.gradients()[offset]);
    });
    for (const double sum : sums) total += sum;
  }
  return std::sqrt(total);
}

std::string first_not_finite(const Model& model) {
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    std::atomic<bool> finite = true;
    for_each_run(model.parameters()[i], model.touched_rows(i), [&](size_t, uint64_t offset, size_t size) {
      if (!kernels::all_finite(size, &model.gradients()[offset])) finite = false;
    });
    if (!finite) return model.parameters()[i].name;
  }
  return {};
}

}  // namespace cgcn
