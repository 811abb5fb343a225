#include "engine/arrays.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "common/threads.h"
#include "graph/graph_builder.h"
#include "io/formats/import_steps.h"

namespace cgcn {
namespace {

using clustergcn::GraphArrays;
using clustergcn::Type;
using Given = clustergcn::Array;

constexpr size_t kRows = 4096;  // checked at a time

NpyHeader header_of(const Given& given) {
  static constexpr std::pair<char, uint32_t> kTypes[] = {{'b', 1}, {'b', 1}, {'i', 1}, {'u', 1}, {'i', 2}, {'i', 4},
                                                         {'u', 4}, {'i', 8}, {'u', 8}, {'f', 2}, {'f', 4}, {'f', 8}};
  NpyHeader header;
  std::tie(header.kind, header.item_bytes) = kTypes[static_cast<size_t>(given.type)];
  header.shape = {given.rows};
  if (given.columns > 0) header.shape.push_back(given.columns);
  return header;
}

// As the readers of files know arrays; `name` is what messages call it.
Array as_array(const Given& given, const char* name) {
  const NpyHeader header = header_of(given);
  const auto* bytes = static_cast<const std::byte*>(given.data);
  return {header, {{bytes, header.num_elements() * header.item_bytes}, given.owner, false}, name};
}

void require_shape(const Given& given, const char* name, uint64_t rows, bool matrix = false) {
  if (given.rows == rows && (given.columns > 0) == matrix) return;
  const std::string shape =
      given.columns > 0 ? fmt::format("{} × {}", given.rows, given.columns) : std::to_string(given.rows);
  throw Error(fmt::format("has the shape {}, and {} rows{} are wanted", shape, rows,
                          matrix ? " of several columns" : " of one number"),
              name);
}

// In place if the bits are those of a T, else a copy. negative: whether a value below 0 may be.
template <class T>
SharedArray<T> take_integers(const Given& given, const char* name, uint64_t limit) {
  const Array array = as_array(given, name);
  array.require_integers("it");
  const bool in_place = header_of(given).item_bytes == sizeof(T) && array.is_integer() && given.type != Type::kBool;
  std::vector<T> copy(in_place ? 0 : given.rows);
  std::atomic<uint64_t> wrong = UINT64_MAX;
  parallel_blocks(given.rows, size_t{1} << 16, [&](size_t begin, size_t end) {
    std::vector<int64_t> values(end - begin);
    array.read(begin, 1, end - begin, values.data());
    for (size_t i = begin; i < end; ++i) {
      const int64_t value = values[i - begin];
      if (value < 0 || static_cast<uint64_t>(value) >= limit) {
        uint64_t first = wrong;
        while (i < first && !wrong.compare_exchange_weak(first, i)) {
        }
      } else if (!in_place) {
        copy[i] = static_cast<T>(value);
      }
    }
  });
  if (wrong != UINT64_MAX) {
    int64_t value = 0;
    array.read(wrong, 1, 1, &value);
    throw Error(fmt::format("entry {} is {}, and it must be from 0 to {}", wrong.load(), value, limit - 1), name);
  }
  if (!in_place) return copy;
  return {{static_cast<const T*>(given.data), given.rows}, given.owner};
}

SharedArray<float> take_floats(const Given& given, const char* name) {
  const Array array = as_array(given, name);
  array.require_numbers("it");
  SharedArray<float> values =
      given.type == Type::kFloat32
          ? SharedArray<float>({static_cast<const float*>(given.data), array.size()}, given.owner)
          : SharedArray<float>(array.read_all<float>());
  const uint64_t columns = std::max<uint64_t>(1, given.columns);
  std::atomic<bool> finite = true;
  parallel_blocks(values.size(), kRows * 16, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      if (!std::isfinite(values[i])) finite = false;
  });
  if (finite) return values;
  size_t i = 0;
  while (std::isfinite(values[i])) ++i;
  throw Error(given.columns > 0
                  ? fmt::format("row {}, column {} is {}, not a finite number", i / columns, i % columns, values[i])
                  : fmt::format("entry {} is {}, not a finite number", i, values[i]),
              name, "replace what is missing first");
}

SharedArray<float> take_weights(const Given& given) {
  SharedArray<float> weights = take_floats(given, "weights");
  const auto negative = std::find_if(weights.begin(), weights.end(), [](float weight) { return weight < 0; });
  if (negative == weights.end()) return weights;
  throw Error(fmt::format("entry {} is {}: an edge's weight is 0 or more", negative - weights.begin(), *negative),
              "weights");
}

// The entries of compressed rows as edges.
class RowEdges final : public EdgeSource {
 public:
  RowEdges(const SharedArray<EdgeOffset>& offsets, const SharedArray<NodeId>& targets,
           const SharedArray<float>& weights)
      : offsets_(offsets), targets_(targets), weights_(weights) {}
  bool weighted() const override { return !weights_.empty(); }
  void visit(const std::function<void(const EdgeRun&)>& use) const override {
    std::vector<NodeId> from;
    for (size_t v = 0; v + 1 < offsets_.size(); ++v) {
      const EdgeOffset begin = offsets_[v], end = offsets_[v + 1];
      from.assign(end - begin, static_cast<NodeId>(v));
      use({from.data(), targets_.data() + begin, weighted() ? weights_.data() + begin : nullptr, end - begin});
    }
  }

 private:
  const SharedArray<EdgeOffset>& offsets_;
  const SharedArray<NodeId>& targets_;
  const SharedArray<float>& weights_;
};

// Whether it is as graphs here are: rows rise, no loop, and every edge has its reverse of the same weight.
bool is_as_wanted(const CsrGraph& graph, const GraphArrays& arrays) {
  std::atomic<bool> fine = true;
  parallel_blocks(graph.num_nodes(), kRows, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end && fine; ++row) {
      const auto v = static_cast<NodeId>(row);
      const auto neighbours = graph.neighbours(v);
      for (size_t i = 0; i < neighbours.size(); ++i) {
        const NodeId u = neighbours[i];
        if ((i > 0 && u <= neighbours[i - 1]) || (u == v && !arrays.keep_self_loops)) fine = false;
      }
    }
  });
  if (!fine || arrays.directed) return fine;
  parallel_blocks(graph.num_nodes(), kRows, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end && fine; ++row) {
      const auto v = static_cast<NodeId>(row);
      const auto neighbours = graph.neighbours(v);
      for (size_t i = 0; i < neighbours.size(); ++i) {
        const auto back = graph.neighbours(neighbours[i]);
        const auto at = std::lower_bound(back.begin(), back.end(), v);
        if (at == back.end() || *at != v) {
          fine = false;
        } else if (graph.weighted()) {
          const auto place = static_cast<size_t>(at - back.begin());
          if (graph.neighbour_weights(neighbours[i])[place] != graph.neighbour_weights(v)[i]) fine = false;
        }
      }
    }
  });
  return fine;
}

BuildOptions build_options(const GraphArrays& arrays) {
  return {.directed = arrays.directed, .keep_self_loops = arrays.keep_self_loops};
}

CsrGraph make_graph_of_rows(const GraphArrays& arrays, NodeId nodes) {
  require_shape(arrays.offsets, "offsets", uint64_t{nodes} + 1);
  const uint64_t entries = arrays.targets.rows;
  require_shape(arrays.targets, "targets", entries);
  const auto offsets = take_integers<EdgeOffset>(arrays.offsets, "offsets", entries + 1);
  if (offsets[0] != 0 || offsets[nodes] != entries || !std::is_sorted(offsets.begin(), offsets.end()))
    throw Error(fmt::format("begins with 0, rises, and ends with the number of targets, {}: it does not", entries),
                "offsets");
  const auto targets = take_integers<NodeId>(arrays.targets, "targets", nodes);
  SharedArray<float> weights;
  if (!arrays.weights.empty()) {
    require_shape(arrays.weights, "weights", entries);
    weights = take_weights(arrays.weights);
  }
  CsrGraph graph(offsets, targets, weights, arrays.directed);
  if (is_as_wanted(graph, arrays)) return graph;
  RowEdges edges(offsets, targets, weights);
  return build_graph(nodes, edges, build_options(arrays), nullptr);
}

CsrGraph make_graph_of_edges(const GraphArrays& arrays, NodeId nodes) {
  require_shape(arrays.from, "from", arrays.from.rows);
  require_shape(arrays.to, "to", arrays.from.rows);
  const auto from = take_integers<NodeId>(arrays.from, "from", nodes),
             to = take_integers<NodeId>(arrays.to, "to", nodes);
  SharedArray<float> weights;
  if (!arrays.weights.empty()) {
    require_shape(arrays.weights, "weights", arrays.from.rows);
    weights = take_weights(arrays.weights);
  }
  class Edges final : public EdgeSource {
   public:
    Edges(std::span<const NodeId> from, std::span<const NodeId> to, std::span<const float> weights)
        : from_(from), to_(to), weights_(weights) {}
    bool weighted() const override { return !weights_.empty(); }
    void visit(const std::function<void(const EdgeRun&)>& use) const override {
      constexpr size_t kRun = size_t{1} << 20;
      for (size_t begin = 0; begin < from_.size(); begin += kRun) {
        const size_t size = std::min(kRun, from_.size() - begin);
        use({from_.data() + begin, to_.data() + begin, weighted() ? weights_.data() + begin : nullptr, size});
      }
    }

   private:
    std::span<const NodeId> from_, to_;
    std::span<const float> weights_;
  } edges(from, to, weights);
  return build_graph(nodes, edges, build_options(arrays), nullptr);
}

FeatureMatrix make_features(const GraphArrays& arrays, NodeId nodes) {
  if (arrays.feature_width >= UINT32_MAX || arrays.features.columns >= UINT32_MAX)
    throw Error("has more columns than a feature matrix can have", "features");
  if (!arrays.feature_offsets.empty() && arrays.feature_width == 0) throw Error("has no columns", "features");
  if (!arrays.features.empty()) {
    require_shape(arrays.features, "features", nodes, true);
    const auto columns = static_cast<uint32_t>(arrays.features.columns);
    if (arrays.features.type == Type::kFloat16) {
      const SharedArray<Half> halves({static_cast<const Half*>(arrays.features.data), nodes * arrays.features.columns},
                                     arrays.features.owner);
      for (size_t i = 0; i < halves.size(); ++i)
        if ((halves[i] & 0x7C00) == 0x7C00)
          throw Error(fmt::format("row {}, column {} is not a finite number", i / columns, i % columns), "features",
                      "replace what is missing first");
      return FeatureMatrix::dense16(halves, columns);
    }
    return FeatureMatrix::dense(take_floats(arrays.features, "features"), columns);
  }
  if (arrays.feature_offsets.empty()) return FeatureMatrix::identity(nodes);
  require_shape(arrays.feature_offsets, "features", uint64_t{nodes} + 1);
  const uint64_t entries = arrays.feature_columns.rows;
  require_shape(arrays.feature_columns, "features", entries);
  require_shape(arrays.feature_values, "features", entries);
  const auto offsets = take_integers<EdgeOffset>(arrays.feature_offsets, "features", entries + 1);
  if (offsets[0] != 0 || offsets[nodes] != entries || !std::is_sorted(offsets.begin(), offsets.end()))
    throw Error("the offsets of its rows do not rise to the number of its entries", "features");
  const auto columns = take_integers<uint32_t>(arrays.feature_columns, "features", arrays.feature_width);
  const auto values = take_floats(arrays.feature_values, "features");
  for (size_t v = 0; v < nodes; ++v)
    for (EdgeOffset i = offsets[v] + 1; i < offsets[v + 1]; ++i)
      if (columns[i] <= columns[i - 1])
        throw Error(fmt::format("the columns of sparse row {} do not rise", v), "features",
                    "sort them, and add up those that come twice");
  return FeatureMatrix::sparse(offsets, columns, values, static_cast<uint32_t>(arrays.feature_width));
}

std::vector<uint8_t> make_split(const GraphArrays& arrays, NodeId nodes) {
  if (!arrays.split.empty()) {
    require_shape(arrays.split, "split", nodes);
    return read_split(as_array(arrays.split, "split"), nodes);
  }
  if (arrays.train.empty() && arrays.validation.empty() && arrays.test.empty()) return {};
  std::vector<uint8_t> split(nodes, static_cast<uint8_t>(Role::kNone));
  const auto assign = [&](const Given& given, const char* name, Role role) {
    if (given.empty()) return;
    const Array part = as_array(given, name);
    if (is_mask(part, name, nodes))
      assign_role_by_mask(part, role, split);
    else
      assign_role(part, role, split);
  };
  assign(arrays.train, "train", Role::kTrain);
  assign(arrays.validation, "validation", Role::kValidation);
  assign(arrays.test, "test", Role::kTest);
  return split;
}

NodeId count_nodes(const GraphArrays& arrays) {
  uint64_t nodes = arrays.nodes;
  if (nodes == 0 && !arrays.offsets.empty()) nodes = arrays.offsets.rows - 1;
  if (nodes == 0 && !arrays.features.empty()) nodes = arrays.features.rows;
  if (nodes == 0 && !arrays.feature_offsets.empty()) nodes = arrays.feature_offsets.rows - 1;
  if (nodes == 0 && !arrays.labels.empty()) nodes = arrays.labels.rows;
  for (const Given* ends : {&arrays.from, &arrays.to}) {
    if (nodes > 0 || ends->empty()) continue;
    const SharedArray<NodeId> ids = take_integers<NodeId>(*ends, ends == &arrays.from ? "from" : "to", kNoNode);
    const SharedArray<NodeId> others = take_integers<NodeId>(arrays.to, "to", kNoNode);
    for (const NodeId v : ids) nodes = std::max<uint64_t>(nodes, uint64_t{v} + 1);
    for (const NodeId v : others) nodes = std::max<uint64_t>(nodes, uint64_t{v} + 1);
  }
  return check_node_count(nodes, "graph");
}

}  // namespace

Dataset make_dataset(const GraphArrays& arrays) {
  Dataset data;
  data.name = arrays.name;
  const NodeId nodes = count_nodes(arrays);
  if (arrays.offsets.empty() && arrays.from.empty())
    throw Error("no edges given: neither rows (offsets, targets) nor edges (from, to)", "graph");
  data.graph = arrays.offsets.empty() ? make_graph_of_edges(arrays, nodes) : make_graph_of_rows(arrays, nodes);
  data.features = make_features(arrays, nodes);
  if (!arrays.labels.empty()) {
    require_shape(arrays.labels, "labels", nodes, arrays.labels.columns > 0);
    data.labels = read_labels(as_array(arrays.labels, "labels"), nodes,
                              arrays.regression ? Task::kRegression : Task::kClassification);
  }
  if (std::vector<uint8_t> split = make_split(arrays, nodes); !split.empty()) data.split = std::move(split);
  if (!arrays.split_shares.empty()) {
    if (!data.labels.present()) throw Error("is drawn from the labelled nodes, and there are no labels", "split");
    try {
      data.split = random_split(data.labels, nodes, parse_split_shares(arrays.split_shares), arrays.split_seed);
    } catch (const std::invalid_argument& problem) {
      throw Error(problem.what(), "split");
    }
  }
  if (!arrays.class_names.empty() && arrays.class_names.size() < data.labels.num_classes())
    throw Error(
        fmt::format("there are {} of them, and {} classes", arrays.class_names.size(), data.labels.num_classes()),
        "class_names");
  if (!arrays.class_names.empty() && !data.labels.multi_label() && !data.labels.regression() && data.labels.present())
    data.labels = Labels::single(std::vector<int32_t>(data.labels.classes().begin(), data.labels.classes().end()),
                                 static_cast<uint32_t>(arrays.class_names.size()));
  data.class_names = arrays.class_names;
  if (!arrays.feature_names.empty() && arrays.feature_names.size() != data.features.columns())
    throw Error(
        fmt::format("there are {} of them, and {} columns", arrays.feature_names.size(), data.features.columns()),
        "feature_names");
  data.feature_names = arrays.feature_names;
  return data;
}

}  // namespace cgcn
