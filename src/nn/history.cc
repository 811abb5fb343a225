#include "nn/history.h"

#include <algorithm>

#include "common/memory.h"
#include "kernels/parallel.h"
#include "nn/aggregate.h"
#include "nn/model.h"

namespace cgcn {

using kernels::ConstMatrix;
using kernels::Matrix;

EmbeddingHistory::EmbeddingHistory(const Model& model, NodeId nodes) : nodes_(nodes), layers_(model.num_layers() - 1) {
  for (uint32_t l = 1; l < model.num_layers(); ++l) {
    Layer& layer = layers_[l - 1];
    layer.width = model.layer_width(l);
    layer.embeddings = Buffer<float>(size_t{nodes} * layer.width);
    prefer_huge_pages(layer.embeddings.data(), layer.embeddings.size() * sizeof(float));
    layer.embeddings.fill(0);
  }
}

uint64_t EmbeddingHistory::planned_bytes(const Model& model, uint64_t nodes) {
  uint64_t columns = 0;
  for (uint32_t l = 1; l < model.num_layers(); ++l) columns += model.layer_width(l);
  return nodes * columns * sizeof(float);
}

ConstMatrix EmbeddingHistory::embeddings(uint32_t layer) const {
  return {layers_[layer - 1].embeddings.data(), nodes_, layers_[layer - 1].width};
}

uint64_t EmbeddingHistory::bytes() const {
  uint64_t total = 0;
  for (const Layer& layer : layers_) total += sizeof(float) * (layer.embeddings.size() + layer.term.size());
  return total;
}

ConstMatrix EmbeddingHistory::term(const Batch& batch, uint32_t layer) const {
  const Layer& below = layers_[layer - 2];
  return {below.term.data(), batch.rows_of_layer(layer), below.width};
}

void EmbeddingHistory::advance(const Batch& batch, uint32_t layer, ConstMatrix below_rows) {
  Layer& below = layers_[layer - 2];
  const Remainder& remainder = *batch.remainder(layer);
  const size_t rows = batch.rows_of_layer(layer);
  if (const size_t size = rows * below.width; size > below.term.size()) below.term = Buffer<float>(size + size / 8);
  const Matrix term(below.term.data(), rows, below.width);
  aggregate_all(remainder.of_history, embeddings(layer - 1), {}, term);
  if (remainder.of_mean.rows > 0) aggregate_all(remainder.of_mean, below_rows, term, term);
  const auto nodes = batch.nodes_of_layer(layer - 1);
  const Matrix kept(below.embeddings.data(), nodes_, below.width);
  kernels::parallel_rows(nodes.size(), kPassRows, [&](kernels::RowRange range) {
    for (size_t r = range.begin; r < range.end; ++r) std::copy_n(below_rows.row(r), below.width, kept.row(nodes[r]));
  });
}

}  // namespace cgcn
