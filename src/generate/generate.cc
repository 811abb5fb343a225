#include "generate/generate.h"

#include <algorithm>

#include "common/interrupt.h"
#include "common/memory_budget.h"
#include "common/progress.h"
#include "common/threads.h"
#include "generate/communities.h"
#include "generate/node_classes.h"
#include "generate/node_features.h"
#include "generate/teacher.h"
#include "generate/topology.h"
#include "graph/graph_builder.h"
#include "graph/npy.h"

namespace cgcn {
namespace {

constexpr uint32_t kUnseenColumns = 16;  // of the features that labels follow from if the store gets none
constexpr size_t kRowBlock = 512, kRowsAtOnce = 64 * kRowBlock;
constexpr uint64_t kBytesPerNode = 36;  // communities, weights, degrees, classes
constexpr uint64_t kLeastBuffers = uint64_t{96} << 20;
constexpr uint64_t kLeastEntries = uint64_t{1} << 22;  // of rows that are put together at a time

// T: float, or Half.
template <class T>
void write_feature_rows(StoreWriter& store, const NodeFeatures& features, NodeId nodes) {
  constexpr bool kHalf = std::is_same_v<T, Half>;
  Progress progress("writing features", nodes, "nodes");
  ArrayWriter writer = store.begin_array<T>("features", features.columns());
  const size_t columns = features.columns();
  Buffer<float> rows(std::min<size_t>(nodes, kRowsAtOnce) * columns);
  Buffer<Half> halves;
  for (size_t at = 0; at < nodes; at += kRowsAtOnce) {
    throw_if_interrupted();
    const size_t count = std::min(kRowsAtOnce, nodes - at);
    parallel_blocks(count, kRowBlock, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        features.row(static_cast<NodeId>(at + i), std::span(&rows[i * columns], columns));
    });
    if constexpr (kHalf) {
      halves.reserve_discarding(rows.size());
      parallel_blocks(count * columns, kRowBlock * 64, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) halves[i] = float_to_half(rows[i]);
      });
      writer.append(std::span<const Half>(halves.data(), count * columns));
    } else {
      writer.append(std::span<const float>(rows.data(), count * columns));
    }
    progress.advance(count);
  }
  store.end_array("features", writer);
  store.declare_features(kHalf ? FeatureMatrix::Kind::kDense16 : FeatureMatrix::Kind::kDense32, features.columns());
}

// Rows go to the store a range at a time, as many as fit.
void write_links(StoreWriter& store, EdgeKeys edges, const Shape& shape, uint64_t memory) {
  BuildOptions options;
  options.entries_at_once = edges.on_disk() ? std::max(memory / 16, kLeastEntries) : 2 * shape.edges;
  ArrayWriter targets = store.begin_array<NodeId>("adjacency_targets");
  const BuiltRows rows =
      build_rows(shape.nodes, edges, options, nullptr,
                 [&](std::span<const NodeId> more, std::span<const float>) { targets.append(more); });
  store.end_array("adjacency_targets", targets);
  Buffer<EdgeOffset> offsets(size_t{shape.nodes} + 1);
  offsets[0] = 0;
  for (size_t v = 0; v < shape.nodes; ++v) offsets[v + 1] = offsets[v] + rows.degrees[v];
  CGCN_CHECK(rows.entries == 2 * shape.edges);
  store.write_array("adjacency_offsets", std::span<const EdgeOffset>(offsets.data(), offsets.size()));
  store.declare_graph(shape.nodes, rows.entries, shape.edges, /*directed=*/false, /*weighted=*/false);
}

template <class T>
SharedArray<T> map_staged(const StoreWriter& store, const std::string& name) {
  const auto file = std::make_shared<const MappedFile>(array_file(store.staging(), name));
  const auto bytes = file->bytes().subspan(kNpyHeaderBytes);
  return {{reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)}, file};
}

SharedArray<uint8_t> draw_split(const Shape& shape, const Labels& labels, uint64_t seed) {
  if (shape.graph_roles.empty()) {
    const std::array<double, 3> shares{static_cast<double>(shape.split[0]), static_cast<double>(shape.split[1]),
                                       static_cast<double>(shape.split[2])};
    return random_split(labels, shape.nodes, shares, seed);
  }
  std::vector<uint8_t> split;
  for (size_t g = 0; g < shape.graph_sizes.size(); ++g)
    split.insert(split.end(), shape.graph_sizes[g], shape.graph_roles[g]);
  return split;
}

void write_graph_numbers(StoreWriter& store, const Shape& shape) {
  if (shape.graph_sizes.size() == 1) return;
  std::vector<uint32_t> numbers;
  for (uint32_t g = 0; g < shape.graph_sizes.size(); ++g) numbers.insert(numbers.end(), shape.graph_sizes[g], g);
  store.write_graph_ids(numbers);
}

}  // namespace

void generate_store(const fs::path& target, const GenerateOptions& options, StagedDirectory::Existing existing,
                    uint64_t memory) {
  const Shape shape = resolve_shape(options);
  const uint64_t seed = options.seed;
  const uint64_t least = kBytesPerNode * shape.nodes + kLeastBuffers;
  if (memory != UINT64_MAX && memory_left(memory) < least)
    refuse_memory_left(least, fmt::format("{} nodes", format_count(shape.nodes)));
  StoreWriter store(target, existing);
  const Communities communities(shape, seed);
  const uint64_t left = memory == UINT64_MAX ? memory : memory_left(memory);
  write_links(store, generate_links(shape, communities, seed, {left, store.staging()}), shape, left);

  std::vector<int32_t> classes;
  if (!shape.multi_label) classes = assign_classes(shape, communities, seed);
  Labels labels;
  {
    const NodeFeatures features(shape, communities, shape.features > 0 ? shape.features : kUnseenColumns, classes,
                                seed);
    if (shape.features > 0 && shape.half_features)
      write_feature_rows<Half>(store, features, shape.nodes);
    else if (shape.features > 0)
      write_feature_rows<float>(store, features, shape.nodes);
    else
      store.declare_features(FeatureMatrix::Kind::kIdentity, shape.nodes);
    if (shape.multi_label) {
      const CsrGraph graph(map_staged<EdgeOffset>(store, "adjacency_offsets"),
                           map_staged<NodeId>(store, "adjacency_targets"), {}, /*directed=*/false);
      labels = Labels::multi(teach_labels(shape, graph, features, seed), shape.classes);
    }
  }
  if (!shape.multi_label) {
    add_label_noise(classes, shape, seed);
    labels = Labels::single(std::move(classes), shape.classes);
    store.write_class_names(shape.class_names);
  }
  store.write_labels(labels);
  store.write_split(draw_split(shape, labels, seed));
  write_graph_numbers(store, shape);
  store.finish(shape.name);
}

}  // namespace cgcn
