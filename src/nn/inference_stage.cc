#include "nn/inference_stage.h"

namespace cgcn {

using kernels::Matrix;

void InferenceStage::infer(const InferenceRows& rows, Matrix out) const {
  InferenceRows next = rows;
  Buffer<float> below, above;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    above = Buffer<float>(last ? 0 : out.rows * layers_[i]->out());
    const Matrix to = last ? out : Matrix(above.data(), out.rows, layers_[i]->out());
    layers_[i]->infer(next, to);
    std::swap(below, above);
    next.own = to;
  }
}

std::vector<InferenceStage> make_stages(std::span<const std::unique_ptr<Layer>> layers) {
  std::vector<InferenceStage> stages;
  for (size_t begin = 0, end = 1; begin < layers.size(); begin = end++) {
    while (end < layers.size() && layers[end]->messages() == Messages::kNone) ++end;
    stages.emplace_back(layers.subspan(begin, end - begin));
  }
  return stages;
}

}  // namespace cgcn
