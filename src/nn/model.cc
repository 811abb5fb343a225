#include "nn/model.h"

#include <algorithm>

#include "common/error.h"
#include "common/threads.h"
#include "kernels/blas.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/spmm.h"
#include "nn/convolution.h"
#include "nn/head.h"
#include "nn/history.h"
#include "nn/input_layer.h"
#include "nn/loss.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::DropoutMask;
using kernels::Matrix;
using kernels::padded;
using kernels::Tiles;

struct Model::Parts {
  ModelOptions options;
  ModelShape shape;
  Parameters parameters;
  std::vector<Layer> layers;
  std::vector<LayerMemory> memory;
  StepMemory shared;
  Workspace workspace;
  Head head;
  SparseInput sparse_input;
  Buffer<float> gathered;  // rows of X, where layer 1 aggregates them
  Loss loss;
  std::vector<size_t> reserved_rows;  // of the input, of layer 1, …, of layer L

  void reserve(std::vector<size_t> rows);
  void reserve_for(const Batch& batch);

  // What a pass does about the constant terms of remainders: takes those that are there; computes them on its way; or
  // computes them and leaves out what only the logits need.
  enum class Terms { kKept, kRenewed, kOnly };

  void forward(const Step& step, const ModelInput& input);
  void run_layers(const Step& step, const ModelInput& input, Terms terms);
  void backward(const Step& step);
  Step inner(const Step& step) const;
  // Dropout before the aggregation: what layer `number` takes, in place.
  DropoutMask source_mask(const Step& step, uint32_t number) const;
  void drop_sources(const Step& step, uint32_t number, Matrix rows);
  void run_first_layer(const Step& step, const ModelInput& input, Matrix next);
  Matrix last_output(const Batch& batch) const;  // of the last convolution
  Matrix logits(const Batch& batch);
};

namespace {

void check(const ModelOptions& options, const ModelShape& shape) {
  CGCN_CHECK(options.layers > 0 && options.hidden > 0 && options.dropout >= 0 && options.dropout < 1);
  if (shape.num_classes == 0) throw Error("the data have no labels, so there is nothing to learn");
  if (shape.input_columns == 0) throw Error("the data have neither features nor nodes to take their place");
}

}  // namespace

Model::Model(const ModelOptions& options, const ModelShape& shape, uint64_t seed) : parts_(std::make_unique<Parts>()) {
  check(options, shape);
  kernels::prepare_blas();
  parts_->options = options;
  parts_->shape = shape;
  parts_->layers = make_layers(options, shape, seed, parts_->parameters, parts_->head);
  parts_->memory.resize(options.layers);
}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const ModelOptions& Model::options() const { return parts_->options; }
const ModelShape& Model::shape() const { return parts_->shape; }
uint32_t Model::layer_width(uint32_t layer) const {
  return layer == num_layers() ? shape().num_classes : static_cast<uint32_t>(parts_->layers[layer - 1].out);
}
const std::vector<Parameter>& Model::parameters() const { return parts_->parameters.list(); }
std::span<float> Model::values() { return parts_->parameters.values(); }
std::span<const float> Model::values() const { return std::as_const(parts_->parameters).values(); }
std::span<float> Model::gradients() { return parts_->parameters.gradients(); }
std::span<const float> Model::gradients() const { return std::as_const(parts_->parameters).gradients(); }

TouchedRows Model::touched_rows(size_t parameter) const {
  if (!parts_->shape.sparse_input || parameter != 0) return {};
  return {false, parts_->sparse_input.touched()};
}

uint64_t Model::num_weights() const {
  uint64_t total = 0;
  for (const Parameter& p : parameters()) total += p.size();
  return total;
}

void Model::reserve(const BatchLimits& limits) {
  parts_->reserve(std::vector<size_t>(parts_->layers.size() + 1, limits.max_nodes));
}

void Model::Parts::reserve(std::vector<size_t> rows) {
  if (reserved_rows.empty()) reserved_rows.assign(rows.size(), 0);
  bool fits = true;
  for (size_t l = 0; l < rows.size(); ++l) {
    fits = fits && rows[l] <= reserved_rows[l];
    rows[l] = std::max(rows[l], reserved_rows[l]);
  }
  if (fits) return;
  reserved_rows = std::move(rows);
  workspace = {};
  const auto place_all = [&] {
    for (size_t i = 0; i < layers.size(); ++i)
      memory[i].place(workspace, layers[i], reserved_rows[i + 1], reserved_rows[i], options,
                      i == 0 && shape.sparse_input);
    shared.place(workspace, layers, reserved_rows);
    if (head.on()) head.place(workspace, reserved_rows.back());
  };
  place_all();
  workspace.allocate();
  place_all();
  loss.reserve(reserved_rows.back());
}

// With room to spare, so that it happens a few times at the beginning of training and not again.
void Model::Parts::reserve_for(const Batch& batch) {
  std::vector<size_t> rows{batch.inputs.size()};
  bool fits = !reserved_rows.empty() && rows[0] <= reserved_rows[0];
  for (uint32_t l = 1; l <= layers.size(); ++l) {
    rows.push_back(batch.rows_of_layer(l));
    fits = fits && rows[l] <= reserved_rows[l];
  }
  if (fits) return;
  for (size_t& count : rows) count += count / 8;
  reserve(std::move(rows));
}

uint64_t Model::workspace_bytes() const {
  return parts_->workspace.bytes() + parts_->sparse_input.bytes() + parts_->gathered.size() * sizeof(float);
}

void Model::Parts::forward(const Step& step, const ModelInput& input) {
  reserve_for(step.batch);
  CGCN_CHECK(layers.size() == 1 || step.batch.blocks.size() == 1 || step.batch.blocks.size() == layers.size() - 1);
  const Remainder* remainder = layers.size() > 1 ? step.batch.remainder(2) : nullptr;
  CGCN_CHECK(remainder == nullptr || input.history != nullptr);
  if (remainder != nullptr && remainder->of_mean.rows > 0 && step.dropout > 0) {
    run_layers(Step{step.batch, step.seed, 0}, input, Terms::kOnly);
    run_layers(step, input, Terms::kKept);
  } else {
    run_layers(step, input, remainder != nullptr ? Terms::kRenewed : Terms::kKept);
  }
}

// The step as the convolutions see it: what is dropped before them is none of their business.
Step Model::Parts::inner(const Step& step) const {
  return {step.batch, step.seed, options.dropout_place == DropoutPlace::kBefore ? 0 : step.dropout};
}

DropoutMask Model::Parts::source_mask(const Step& step, uint32_t number) const {
  if (options.dropout_place == DropoutPlace::kAfter) return {};
  return step.mask(memory[number - 1].source_bits, layers[number - 1].in);
}

void Model::Parts::drop_sources(const Step& step, uint32_t number, Matrix rows) {
  const DropoutMask mask = source_mask(step, number);
  if (mask.empty()) return;
  const kernels::DropoutKey key = step.dropout_key(aggregated_stream(layers[number - 1]));
  kernels::parallel_rows(rows.rows, kPassRows, [&](kernels::RowRange range) {
    draw_dropout(key, step.dropout, range, {0, rows.columns}, mask);
    apply_dropout(mask, range, rows, rows);
  });
}

void Model::Parts::run_first_layer(const Step& step, const ModelInput& input, Matrix next) {
  if (shape.sparse_input) {
    sparse_input.gather(layers[0], step, input.x, input.aggregated);
    forward_sparse_input(layers[0], step, sparse_input, memory[0], next);
  } else if (step.batch.input_block == nullptr) {
    forward_dense_input(layers[0], step, input.x, input.aggregated, memory[0], next);
  } else {
    const size_t sources = step.batch.inputs.size(), columns = layers[0].in;
    if (const size_t size = sources * kernels::padded_stride(columns); size > gathered.size())
      gathered = Buffer<float>(size + size / 8);
    const Matrix rows = padded(gathered.data(), sources, columns);
    gather_features(input.x, step.batch, rows);
    drop_sources(step, 1, rows);
    forward_convolution(layers[0], inner(step), memory[0], shared, rows, {}, next);
  }
}

void Model::Parts::run_layers(const Step& step, const ModelInput& input, Terms terms) {
  const Step inner = this->inner(step);
  // H_l lies where layer l + 1 wants it: in that layer's memory where it projects first, else in one of two buffers.
  const auto embedding_of = [&](uint32_t number) {
    const Layer& layer = layers[number - 1];
    if (layer.last) return Matrix();
    float* place = cgcn::projects_first(layers[number], inner) ? memory[number].input : shared.embeddings[number % 2];
    return padded(place, step.batch.rows_of_layer(number), layer.out);
  };
  Matrix previous = embedding_of(1);
  run_first_layer(step, input, previous);
  for (uint32_t number = 2; number <= layers.size(); ++number) {
    drop_sources(step, number, previous);
    const Matrix next = embedding_of(number);
    if (terms != Terms::kKept) input.history->advance(step.batch, number, previous);
    if (terms == Terms::kOnly && layers[number - 1].last) return;
    const ConstMatrix term = step.batch.remainders.empty() ? ConstMatrix() : input.history->term(step.batch, number);
    forward_convolution(layers[number - 1], inner, memory[number - 1], shared, previous, term, next);
    previous = next;
  }
}

void Model::Parts::backward(const Step& step) {
  const Step inner = this->inner(step);
  for (size_t i = layers.size() - 1; i > 0; --i)
    backward_convolution(layers[i], layers[i - 1], inner, memory[i], memory[i - 1], shared,
                         source_mask(step, layers[i].number));
  if (shape.sparse_input)
    sparse_input.backward(layers[0], step, padded(memory[0].output, step.batch.rows_of_layer(1), layers[0].out));
  else
    backward_dense_input(layers[0], step, memory[0]);
}

Matrix Model::Parts::last_output(const Batch& batch) const {
  return padded(memory.back().output, batch.num_outputs, layers.back().out);
}

Matrix Model::Parts::logits(const Batch& batch) {
  return head.on() ? head.forward(last_output(batch)) : last_output(batch);
}

StepResult Model::compute_gradients(const Batch& batch, const ModelInput& input, uint64_t seed) {
  Parts& p = *parts_;
  const Step step{batch, seed, p.options.dropout};
  p.forward(step, input);
  const StepResult result{p.loss.replace_by_gradient(batch, input.labels, p.logits(batch)),
                          static_cast<uint32_t>(batch.loss_rows.size())};
  if (p.head.on()) p.head.backward(p.last_output(batch));
  p.backward(step);
  return result;
}

void Model::predict(const Batch& batch, const ModelInput& input, float* logits) {
  Parts& p = *parts_;
  p.forward(Step{batch, 0, 0}, input);
  const Matrix rows = p.logits(batch);
  for (size_t r = 0; r < rows.rows; ++r) std::copy_n(rows.row(r), rows.columns, logits + r * rows.columns);
}

namespace {

// z += features(rows)·weight, one kind of features after the other; keep 0: z is not initialised yet.
void add_feature_product(const FeatureMatrix& features, NodeId begin, NodeId end, ConstMatrix weight, Matrix z,
                         float keep) {
  const size_t rows = end - begin;
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      multiply(ConstMatrix(features.dense32().data(), features.rows(), weight.rows).rows_from(begin, end), weight, z,
               keep);
      return;
    case FeatureMatrix::Kind::kDense16: {
      Buffer<float> converted(rows * weight.rows);
      for (NodeId v = begin; v < end; ++v) features.copy_row(v, &converted[(v - begin) * weight.rows]);
      multiply(ConstMatrix(converted.data(), rows, weight.rows), weight, z, keep);
      return;
    }
    case FeatureMatrix::Kind::kSparse: {
      const SparseView view{static_cast<uint32_t>(rows), features.columns(), features.sparse_offsets().data() + begin,
                            features.sparse_columns().data(), features.sparse_values().data()};
      kernels::aggregate(view, weight, {0, rows}, keep != 0 ? ConstMatrix(z) : ConstMatrix(), {}, z);
      return;
    }
    case FeatureMatrix::Kind::kIdentity:
      for (NodeId v = begin; v < end; ++v)
        for (size_t c = 0; c < z.columns; ++c) {
          float& value = z.row(v - begin)[c];
          value = (keep != 0 ? value : 0) + weight.row(v)[c];
        }
  }
}

}  // namespace

void Model::infer_first_layer(const FeatureMatrix& x, const FeatureMatrix& aggregated, NodeId begin, NodeId end,
                              float* out) const {
  const Layer& layer = parts_->layers[0];
  const bool to_head = layer.last && parts_->head.on();
  Buffer<float> before_head(to_head ? (end - begin) * layer.out : 0);
  const Matrix z(to_head ? before_head.data() : out, end - begin, layer.out);
  constexpr size_t kRows = 512;
  parallel_blocks(z.rows, kRows, [&](size_t row, size_t row_end) {
    const auto first = static_cast<NodeId>(begin + row), last = static_cast<NodeId>(begin + row_end);
    const Matrix z_rows = z.rows_from(row, row_end);
    add_feature_product(aggregated, first, last, layer.aggregated_weight(), z_rows, layer.begin_tile(z_rows, 0));
    if (layer.concat) add_feature_product(x, first, last, layer.own_weight(), z_rows, 1);
  });
  layer.activate_all(z, {}, layer.norm(), z);
  if (to_head) parts_->head.infer(z, out);
}

void Model::infer_layer(uint32_t number, const float* aggregated, const float* own, size_t n, float* out) const {
  const Layer& layer = parts_->layers[number - 1];
  const ConstMatrix aggregated_rows(aggregated, n, layer.in), own_rows(own, n, layer.in);
  const bool to_head = layer.last && parts_->head.on();
  Buffer<float> before_head(to_head ? n * layer.out : 0);
  const Matrix z(to_head ? before_head.data() : out, n, layer.out);
  const Tiles tiles = Tiles::of_rows(n, layer.out);
  kernels::parallel_parts(tiles.count(), [&](size_t i) {
    const auto [row, row_end] = tiles.rows(i);
    const auto [column, column_end] = tiles.columns(i);
    const Matrix tile = z.tile(row, row_end, column, column_end);
    multiply(aggregated_rows.rows_from(row, row_end), layer.aggregated_weight().columns_from(column, column_end), tile,
             layer.begin_tile(tile, column));
    if (layer.concat)
      multiply(own_rows.rows_from(row, row_end), layer.own_weight().columns_from(column, column_end), tile, 1);
  });
  layer.activate_all(z, own_rows, layer.norm(), z);
  if (to_head) parts_->head.infer(z, out);
}

bool Model::projects_first(uint32_t number) const { return parts_->layers[number - 1].may_project_first(); }

void Model::project(uint32_t number, const float* own, size_t n, float* projected, float* own_part) const {
  const Layer& layer = parts_->layers[number - 1];
  const ConstMatrix own_rows(own, n, layer.in);
  const Matrix projected_rows(projected, n, layer.out), own_parts(own_part, n, layer.out);
  const Tiles tiles = Tiles::of_rows(n, layer.out);
  kernels::parallel_parts(tiles.count(), [&](size_t i) {
    const auto [row, row_end] = tiles.rows(i);
    const auto [column, column_end] = tiles.columns(i);
    const ConstMatrix rows = own_rows.rows_from(row, row_end);
    multiply(rows, layer.aggregated_weight().columns_from(column, column_end),
             projected_rows.tile(row, row_end, column, column_end));
    const Matrix part = own_parts.tile(row, row_end, column, column_end);
    const float keep = layer.begin_tile(part, column);
    if (layer.concat)
      multiply(rows, layer.own_weight().columns_from(column, column_end), part, keep);
    else if (keep == 0)
      for (size_t r = 0; r < part.rows; ++r) std::fill_n(part.row(r), part.columns, 0.0f);
  });
}

void Model::finish_layer(uint32_t number, const float* own, size_t n, float* z) const {
  const Layer& layer = parts_->layers[number - 1];
  const Matrix rows(z, n, layer.out);
  layer.activate_all(rows, ConstMatrix(own, n, layer.in), layer.norm(), rows);
}

}  // namespace cgcn
