// What stands between two products, a component of layers: LayerNorm or BatchNorm (optional), then ReLU, then the
// residual. Keeps z and the statistics for the way back, in float32.
//
// BatchNorm takes the mean and the variance of a column over all rows of the batch, each batch of a step by itself.
// What inference takes are running means of both: parameters that the optimiser leaves alone. A batch puts its
// statistics where their gradients would be, so that they are added up over the batches of a step as gradients are, in
// the same order for any number of processes; Model::move_statistics() moves the running means towards them.
#pragma once

#include <string>

#include "kernels/activation.h"
#include "kernels/batch_norm.h"
#include "nn/model_options.h"
#include "nn/parameters.h"
#include "nn/step.h"
#include "nn/workspace.h"

namespace cgcn {

class Activation {
 public:
  Activation() = default;  // nothing stands there
  Activation(const std::string& layer, size_t columns, NormKind kind, Parameters& parameters);
  bool on() const { return columns_ > 0; }

  void plan(Workspace& workspace, size_t rows);
  // Where z belongs; and where a layer that gives `out` puts it.
  kernels::Matrix input(size_t rows) const { return kernels::padded(z_, rows, columns_); }
  kernels::Matrix input_of(kernels::Rows out) const { return on() ? input(out.rows) : out.floats(); }
  // out = act(z) [+ residual]. A step's z lies in input(), and what its way back needs is kept. Inference has no step
  // (null), takes any z and keeps nothing. out may be z; if nothing stands there, it is z.
  void apply(const Step* step, kernels::ConstMatrix z, kernels::ConstRows residual, kernels::Rows out) const;
  // From the gradient at the output to the one at z, which takes z's place, and those of the norm.
  kernels::Rows backward(kernels::ConstRows output_gradient) const;

 private:
  kernels::LayerNorm norm(float* mean, float* inverse_deviation) const {
    return {scale_.value().data, offset_.value().data, mean, inverse_deviation};
  }
  kernels::BatchNorm batch_norm(const float* mean, const float* inverse_deviation) const {
    return {mean, inverse_deviation, scale_.value().data, offset_.value().data};
  }
  bool is_batch_norm() const { return running_mean_.exists(); }
  void measure_batch(kernels::ConstMatrix z) const;
  void activate_batch(kernels::ConstMatrix z, const kernels::BatchNorm& norm, kernels::ConstRows residual,
                      kernels::Rows out) const;
  template <class AddBlock>
  void sum_blocks(size_t rows, size_t sums_per_block, AddBlock&& add_block, std::initializer_list<float*> totals) const;

  size_t columns_ = 0;
  OwnParameter scale_, offset_, running_mean_, running_variance_;
  float *z_ = nullptr, *mean_ = nullptr, *inverse_deviation_ = nullptr;  // of rows; of columns with BatchNorm
  Workspace* workspace_ = nullptr;
};

}  // namespace cgcn
