// One layer of the network. Layers are a chain from the features to the logits: each takes the rows H that the one
// below it gives and knows nothing else of it. A layer's file has its parameters, the memory of a step, forward,
// backward and exact inference one below the other.
//
// A step:      plan → forward up the chain → the loss replaces the logits by their gradient → backward down the chain.
// Inference:   rows of the whole graph, in blocks that the caller chooses (InferenceRows), without dropout.
//
// To add a kind of layer, derive from Layer in a file of its own and make it in make_layers() (layers.cc).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "common/buffer.h"
#include "kernels/bfloat16.h"
#include "kernels/dropout.h"
#include "nn/step.h"
#include "nn/workspace.h"

namespace cgcn {

// Which rows of a parameter have a gradient that may differ from zero.
struct TouchedRows {
  bool all = true;
  std::span<const uint32_t> rows;  // rising; if not all
};

// What a layer infers some rows of the graph from. Embeddings are of the precision of the inference.
struct InferenceRows {
  const FeatureMatrix& x;
  const FeatureMatrix& aggregated_x;  // N(A)·X
  NodeId begin, end;                  // the rows of the features
  // Of the layer below, the same rows, or what is kept of them; and of N(A)·M, M the messages of all nodes. Empty if
  // there is no such thing.
  kernels::ConstRows own = {}, aggregated = {};
  // The same rows of H_0, and what the layers below left for the head, in float32; empty if nothing takes them.
  kernels::ConstRows initial = {};
  kernels::ConstMatrix carried = {};
  const BFloat16* packed = nullptr;  // the layer's weights, for products in bfloat16; null: they are float32
};

// Where a layer takes what it aggregates from: nowhere; the rows of the layer below as they are; or messages that it
// makes of them.
enum class Messages { kNone, kInput, kOwn };

// A layer's place in the network.
struct LayerShape {
  uint32_t number = 0;  // l of H_l, the rows that it gives; 0: those that the first convolution takes
  size_t in = 0, out = 0;
  bool last = false;  // gives logits, or an embedding without norm and ReLU

  std::string name() const { return fmt::format("layer{}", number); }  // of its parameters
};

class Layer {
 public:
  explicit Layer(const LayerShape& shape) : shape_(shape) {}
  virtual ~Layer() = default;
  uint32_t number() const { return shape_.number; }
  // Which of the model's parameters are its own: begin … end.
  std::pair<size_t, size_t> parameter_range() const { return parameter_range_; }
  void set_parameter_range(size_t begin, size_t end) { parameter_range_ = {begin, end}; }
  size_t in() const { return shape_.in; }
  size_t out() const { return shape_.out; }

  // Takes the memory of a step. rows: of the input, of H_1, …, of H_L.
  virtual void plan(Workspace& workspace, std::span<const size_t> rows) = 0;
  // Where the layer below puts its rows, and in which precision: that of the workspace if they come from an activation,
  // float32 if they come from a product.
  virtual kernels::Rows place_input(const Step& step) const = 0;
  // `below` lies where place_input() said (nothing for the first layer).
  virtual void forward(const Step& step, kernels::Rows below, kernels::Rows out) = 0;
  // From the gradient at the output, in either precision, to those of the parameters and at the input, which is
  // returned (nothing by the first layer). May overwrite what it is given.
  virtual kernels::Rows backward(const Step& step, kernels::Rows gradient) = 0;

  // For a head that takes the rows of all layers: those of layer l when they are there, and its share in their
  // gradient.
  virtual void take_rows(const Step&, uint32_t, kernels::ConstRows) {}
  virtual void add_gradient(uint32_t, kernels::Rows) const {}
  // The same in inference: what is carried from the rows of layers 1 … l to the head, after = carry(l, H_l, before).
  virtual size_t carried_columns() const { return 0; }
  virtual void carry(uint32_t, kernels::ConstRows, kernels::ConstMatrix, kernels::Matrix) const {}

  // Exact inference: if messages() is kOwn, message() makes them, row by row, message_columns() wide; and what infer()
  // takes of a node's own row, if that is narrower than the row itself: kept_columns() wide, as wide as what it gives,
  // which may take its place. Such a layer makes both in float32.
  virtual Messages messages() const { return Messages::kNone; }
  virtual size_t message_columns() const { return 0; }
  virtual size_t kept_columns() const { return in(); }
  virtual void message(kernels::ConstRows /*own*/, const BFloat16* /*packed*/, kernels::Rows /*messages*/,
                       kernels::Rows /*kept*/) const {}
  // out: of either precision.
  virtual void infer(const InferenceRows& rows, kernels::Rows out) const = 0;
  // In bfloat16: the weights as message() and infer() take them, rounded and packed once.
  virtual size_t packed_elements() const { return 0; }
  virtual void pack_weights(BFloat16*) const {}

  // By the last backward(); of the first parameter that the layer has. The others are touched in all rows.
  virtual TouchedRows touched_rows() const { return {}; }
  // As if the last backward() had touched these, if it touched some: their gradients were put there by others.
  virtual void set_touched_rows(std::span<const uint32_t>) {}
  // What it takes in addition to the workspace.
  virtual uint64_t bytes() const { return 0; }

 private:
  LayerShape shape_;
  std::pair<size_t, size_t> parameter_range_;
};

// Where a layer's product goes in inference: to `out` itself, or to float32 rows that `out` is made of.
class ProductRows {
 public:
  explicit ProductRows(kernels::Rows out)
      : memory_(out.is_half() ? out.rows * out.columns : 0),
        z_(out.is_half() ? kernels::Matrix(memory_.data(), out.rows, out.columns) : out.floats()) {}
  kernels::Matrix z() const { return z_; }

 private:
  Buffer<float> memory_;
  kernels::Matrix z_;
};

// Rows as float32: where they lie, or in `memory`.
inline kernels::ConstMatrix widened(kernels::ConstRows rows, Buffer<float>& memory) {
  if (!rows.is_half()) return rows.floats();
  memory = Buffer<float>(rows.rows * rows.columns);
  const kernels::Matrix wide(memory.data(), rows.rows, rows.columns);
  kernels::copy_rows(rows, wide);
  return wide;
}

// Rows of row passes that are not fused with a product; fixed, so that sums over blocks do not depend on threads.
inline constexpr size_t kPassRows = 64;

}  // namespace cgcn
