#include "nn/layers.h"

#include "nn/convolution.h"
#include "nn/dense_head.h"
#include "nn/input_layer.h"
#include "nn/input_projection.h"
#include "nn/linear_head.h"

namespace cgcn {

std::vector<std::unique_ptr<Layer>> make_layers(const ModelOptions& options, const ModelShape& shape,
                                                Parameters& parameters) {
  const bool has_head = options.head_kind() != HeadKind::kConvolution, sparse = shape.sparse_input;
  const uint32_t last = options.layers;
  const LayerShape projection{.number = 0, .in = shape.input_columns, .out = options.hidden};
  const LayerShape head{.number = last, .in = options.hidden, .out = shape.num_classes};

  std::vector<std::unique_ptr<Layer>> layers;
  size_t begun = 0;
  const auto add = [&](std::unique_ptr<Layer> layer) {
    layer->set_parameter_range(begun, parameters.list().size());
    begun = parameters.list().size();
    layers.push_back(std::move(layer));
  };
  InitialRows* initial = nullptr;
  if (options.input_projection) {
    auto made = std::make_unique<InputProjection>(projection, options, sparse, parameters);
    initial = made->initial_rows();
    add(std::move(made));
  }
  for (uint32_t l = 1; l <= last; ++l) {
    const LayerShape place{.number = l,
                           .in = layers.empty() ? shape.input_columns : options.hidden,
                           .out = l == last && !has_head ? shape.num_classes : options.hidden,
                           .last = options.is_last(l)};
    if (layers.empty())
      add(std::make_unique<InputLayer>(place, options, sparse, parameters));
    else
      add(std::make_unique<Convolution>(place, options, initial, parameters));
  }
  if (options.head_kind() == HeadKind::kDense) add(std::make_unique<DenseHead>(head, parameters));
  if (options.head_kind() == HeadKind::kLinear) add(std::make_unique<LinearHead>(head, options, parameters));
  return layers;
}

}  // namespace cgcn
