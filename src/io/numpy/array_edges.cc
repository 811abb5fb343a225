#include "io/numpy/array_edges.h"

#include <cmath>

#include "common/error.h"

namespace cgcn {
namespace {

constexpr size_t kRun = size_t{1} << 16;

}  // namespace

NodeId check_node(int64_t id, uint64_t edge, NodeId num_nodes, const std::string& where) {
  if (id < 0) throw Error(fmt::format("edge {} names node {}, which is negative", edge, id), where);
  if (id >= static_cast<int64_t>(num_nodes))
    throw Error(fmt::format("edge {} names node {}, but there are {} nodes, numbered from 0", edge, id, num_nodes),
                where);
  return static_cast<NodeId>(id);
}

float check_weight(float weight, uint64_t edge, const std::string& where) {
  if (!std::isfinite(weight)) throw Error(fmt::format("the weight of edge {} is not a finite number", edge), where);
  if (weight < 0) throw Error(fmt::format("negative edge weight '{}' (edge {})", weight, edge), where);
  return weight;
}

ColumnEdges::ColumnEdges(IdColumn from, IdColumn to, uint64_t count, std::optional<Array> weights, NodeId num_nodes)
    : from_(std::move(from)), to_(std::move(to)), count_(count), weights_(std::move(weights)), num_nodes_(num_nodes) {
  from_.array.require_integers("node ids");
  to_.array.require_integers("node ids");
  if (!weights_) return;
  weights_->require_numbers("edge weights");
  if (weights_->size() != count_)
    throw Error(fmt::format("holds {} weights for {} edges", weights_->size(), count_), weights_->where());
}

ColumnEdges ColumnEdges::from_edge_index(const Array& edge_index, std::optional<Array> weights, NodeId num_nodes) {
  const uint64_t rows = edge_index.rows(), columns = edge_index.columns();
  if (edge_index.shape().size() != 2 || (rows != 2 && columns != 2))
    throw Error(fmt::format("has shape ({}), but an edge index has shape (2, E) or (E, 2)",
                            fmt::join(edge_index.shape(), ", ")),
                edge_index.where());
  const bool pairs = rows != 2;  // [E, 2]
  const uint64_t count = pairs ? rows : columns;
  const bool interleaved = pairs != edge_index.fortran_order();  // from and to lie side by side
  const IdColumn from{edge_index, 0, interleaved ? 2u : 1u};
  const IdColumn to{edge_index, interleaved ? 1 : count, interleaved ? 2u : 1u};
  return {from, to, count, std::move(weights), num_nodes};
}

void ColumnEdges::visit(const std::function<void(const EdgeRun&)>& use) const {
  Buffer<int64_t> wide(kRun);
  Buffer<NodeId> from(kRun), to(kRun);
  Buffer<float> weights(weights_ ? kRun : 0);
  for (uint64_t first = 0; first < count_; first += kRun) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kRun, count_ - first));
    for (const auto& [column, out] : {std::pair{&from_, &from}, std::pair{&to_, &to}}) {
      column->array.read(column->first + first * column->stride, column->stride, count, wide.data());
      for (size_t i = 0; i < count; ++i) (*out)[i] = check_node(wide[i], first + i, num_nodes_, column->array.where());
      column->array.release();
    }
    if (weights_) {
      weights_->read(first, 1, count, weights.data());
      for (size_t i = 0; i < count; ++i) check_weight(weights[i], first + i, weights_->where());
      weights_->release();
    }
    use({from.data(), to.data(), weights_ ? weights.data() : nullptr, count});
  }
}

uint64_t ColumnEdges::largest_id_plus_one() const {
  uint64_t bound = 0;
  Buffer<int64_t> ids(kRun);
  for (const IdColumn* column : {&from_, &to_})
    for (uint64_t first = 0; first < count_; first += kRun) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(kRun, count_ - first));
      column->array.read(column->first + first * column->stride, column->stride, count, ids.data());
      column->array.release();
      for (size_t i = 0; i < count; ++i)
        if (ids[i] >= 0) bound = std::max(bound, static_cast<uint64_t>(ids[i]) + 1);  // negative ones fail in visit()
    }
  return bound;
}

bool all_ones(const Array& array) {
  Buffer<float> values(kRun);
  for (uint64_t first = 0; first < array.size(); first += kRun) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kRun, array.size() - first));
    array.read(first, 1, count, values.data());
    array.release();
    if (!std::all_of(values.begin(), values.begin() + count, [](float value) { return value == 1; })) return false;
  }
  return true;
}

}  // namespace cgcn
