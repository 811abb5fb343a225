#include "nn/model.h"

#include <algorithm>

#include "common/error.h"
#include "common/threads.h"
#include "kernels/bfloat16_gemm.h"
#include "kernels/blas.h"
#include "nn/layers.h"
#include "nn/loss.h"
#include "nn/sparse_input.h"

namespace cgcn {

using kernels::Matrix;
using kernels::padded;
using kernels::Rows;

struct Model::Network {
  ModelOptions options;
  ModelShape shape;
  Parameters parameters;
  std::vector<std::unique_ptr<Layer>> layers;  // from the features to the logits
  Workspace workspace;
  float* logits = nullptr;
  Loss loss;
  std::vector<size_t> reserved_rows;  // of the input, of layer 1, …, of layer L
  bool planned = false;               // sizes only

  void reserve(std::vector<size_t> rows);
  void reserve_for(const Batch& batch);
  Matrix forward(Step step);
  Matrix run_layers(const Step& step);
  void backward(const Step& step, Rows gradient, const GradientPass& pass);
};

namespace {

void check(const ModelOptions& options, const ModelShape& shape) {
  CGCN_CHECK(options.layers > 0 && options.hidden > 0 && options.dropout >= 0 && options.dropout < 1);
  if (shape.num_classes == 0) throw Error("the graph has no labels to learn");
  if (shape.input_columns == 0) throw Error("the data have neither features nor nodes to take their place");
}

}  // namespace

Model Model::planned(const ModelOptions& options, const ModelShape& shape) {
  check(options, shape);
  auto network = std::make_unique<Network>();
  network->options = options;
  network->workspace = Workspace(options.precision);
  network->shape = shape;
  network->layers = make_layers(options, shape, network->parameters);
  network->planned = true;
  return Model(std::move(network));
}
Model::Model(std::unique_ptr<Network> network) : network_(std::move(network)) {}
Model::Model(const ModelOptions& options, const ModelShape& shape, uint64_t seed) : Model(planned(options, shape)) {
  kernels::prepare_blas();
  network_->parameters.allocate(seed);
  network_->planned = false;
}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const ModelOptions& Model::options() const { return network_->options; }
const ModelShape& Model::shape() const { return network_->shape; }
uint32_t Model::layer_width(uint32_t layer) const {
  return layer == num_layers() ? shape().num_classes : options().hidden;
}
const std::vector<Parameter>& Model::parameters() const { return network_->parameters.list(); }
std::span<float> Model::values() { return network_->parameters.values(); }
std::span<const float> Model::values() const { return std::as_const(network_->parameters).values(); }
std::span<float> Model::gradients() { return network_->parameters.gradients(); }
std::span<const float> Model::gradients() const { return std::as_const(network_->parameters).gradients(); }

TouchedRows Model::touched_rows(size_t parameter) const {
  return parameter == 0 ? network_->layers.front()->touched_rows() : TouchedRows();
}

void Model::set_touched_rows(std::span<const uint32_t> rows) { network_->layers.front()->set_touched_rows(rows); }

std::vector<std::pair<uint64_t, uint64_t>> Model::gradient_ranges() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  uint64_t end = value_bytes() / sizeof(float);
  for (auto layer = network_->layers.rbegin(); layer != network_->layers.rend(); ++layer) {
    const auto [first, last] = (*layer)->parameter_range();
    const uint64_t begin = first < last ? parameters()[first].offset : end;
    ranges.emplace_back(begin, end);
    end = begin;
  }
  return ranges;
}

uint64_t Model::value_bytes() const { return network_->parameters.value_bytes(); }

uint64_t Model::num_weights() const {
  uint64_t total = 0;
  for (const Parameter& p : parameters()) total += p.is_learnt() ? p.size() : 0;
  return total;
}

void Model::reserve(const BatchLimits& limits) {
  network_->reserve(std::vector<size_t>(size_t{num_layers()} + 1, limits.max_nodes));
}

void Model::Network::reserve(std::vector<size_t> rows) {
  if (reserved_rows.empty()) reserved_rows.assign(rows.size(), 0);
  bool fits = true;
  for (size_t l = 0; l < rows.size(); ++l) {
    fits = fits && rows[l] <= reserved_rows[l];
    rows[l] = std::max(rows[l], reserved_rows[l]);
  }
  if (fits) return;
  reserved_rows = std::move(rows);
  const auto place = [&] {
    for (const auto& layer : layers) layer->plan(workspace, reserved_rows);
    logits = workspace.take_matrix(reserved_rows.back(), shape.num_classes);
  };
  if (planned) return workspace.count(place);
  workspace.lay_out(place);
  loss.reserve(reserved_rows.back());
}

// With room to spare, so that it happens a few times at the beginning of training and not again.
void Model::Network::reserve_for(const Batch& batch) {
  std::vector<size_t> rows;
  bool fits = !reserved_rows.empty();
  for (uint32_t l = 0; l <= options.layers; ++l) {
    rows.push_back(batch.rows_of_layer(l));
    fits = fits && rows[l] <= reserved_rows[l];
  }
  if (fits) return;
  for (size_t& count : rows) count += count / 8;
  reserve(std::move(rows));
}

uint64_t Model::workspace_bytes() const {
  uint64_t total = network_->workspace.bytes();
  for (const auto& layer : network_->layers) total += layer->bytes();
  if (options().precision == kernels::Precision::kFloat32 || network_->reserved_rows.empty()) return total;
  const size_t rows = *std::max_element(network_->reserved_rows.begin(), network_->reserved_rows.end());
  return total + static_cast<uint64_t>(thread_count()) * kernels::product_scratch_bytes(rows);
}

uint64_t Model::sparse_input_bytes(uint64_t rows, uint64_t entries) const {
  return shape().sparse_input ? SparseInput::planned_bytes(rows, entries, parameters().front().rows) : 0;
}

// Returns the logits.
Matrix Model::Network::forward(Step step) {
  reserve_for(step.batch);
  CGCN_CHECK(options.layers == 1 || step.batch.adjacencies.size() == 1 ||
             step.batch.adjacencies.size() == options.layers - 1);
  CGCN_CHECK(!options.input_projection || step.batch.input_adjacency != nullptr);
  const Remainder* remainder = options.layers > 1 ? step.batch.remainder(2) : nullptr;
  CGCN_CHECK(remainder == nullptr || step.input.history != nullptr);
  if (remainder == nullptr) return run_layers(step);
  if (remainder->of_mean.rows > 0 && (step.dropout > 0 || step.input_dropout > 0)) {
    run_layers({step.batch, step.input, step.seed, 0, Terms::kOnly, 0, step.training});
    return run_layers(step);
  }
  step.terms = Terms::kRenewed;
  return run_layers(step);
}

Matrix Model::Network::run_layers(const Step& step) {
  Rows rows;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool top = i + 1 == layers.size();
    const Rows out = top ? padded(logits, step.batch.num_outputs, shape.num_classes) : layers[i + 1]->place_input(step);
    layers[i]->forward(step, rows, out);
    if (!top) layers.back()->take_rows(step, layers[i]->number(), out);
    if (step.terms == Terms::kOnly && layers[i]->number() == options.layers) return {};
    rows = out;
  }
  return rows.floats();
}

void Model::Network::backward(const Step& step, Rows gradient, const GradientPass& pass) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t place = layers.size() - 1 - i;
    if (i > 1) layers.back()->add_gradient(layers[place]->number(), gradient);
    gradient = layers[place]->backward(step, gradient);
    if (pass.on_ready) pass.on_ready(i);
  }
}

StepResult Model::compute_gradients(const Batch& batch, const ModelInput& input, uint64_t seed,
                                    const GradientPass& pass) {
  const Step step{batch, input, seed, options().dropout, Terms::kKept, options().first_dropout(), /*training=*/true};
  const Matrix logits = network_->forward(step);
  const double loss = network_->loss.replace_by_gradient(batch, input.labels, logits, pass.scale);
  network_->backward(step, logits, pass);
  return {loss, static_cast<uint32_t>(batch.loss_rows.size())};
}

void Model::set_regression(RegressionLoss kind, const TargetScaling& target) {
  network_->loss.set_regression(kind, target);
}

void Model::weigh_classes(std::vector<float> weights) { network_->loss.weigh_classes(std::move(weights)); }

void Model::move_statistics(uint32_t batches) {
  constexpr float kMomentum = 0.1f;  // as in PyTorch
  for (const Parameter& p : parameters()) {
    if (p.is_learnt()) continue;
    const float share = kMomentum / static_cast<float>(batches);
    for (uint64_t i = p.offset; i < p.offset + p.size(); ++i)
      values()[i] = (1 - kMomentum) * values()[i] + share * gradients()[i];
  }
}

void Model::predict(const Batch& batch, const ModelInput& input, float* logits) {
  const Matrix rows = network_->forward({batch, input});
  for (size_t r = 0; r < rows.rows; ++r) std::copy_n(rows.row(r), rows.columns, logits + r * rows.columns);
}

std::vector<InferenceStage> Model::stages() const {
  const bool takes_initial = options().input_projection && options().initial_residual > 0;
  return make_stages(network_->layers, takes_initial ? options().hidden : 0, options().precision);
}

}  // namespace cgcn
