#include "generate/generate.h"

#include <algorithm>

#include "common/interrupt.h"
#include "common/progress.h"
#include "common/threads.h"
#include "generate/communities.h"
#include "generate/node_classes.h"
#include "generate/node_features.h"
#include "generate/teacher.h"
#include "generate/topology.h"

namespace cgcn {
namespace {

constexpr uint32_t kUnseenColumns = 16;  // of the features that labels follow from where the store gets none
constexpr size_t kRowBlock = 512, kRowsAtOnce = 64 * kRowBlock;

void write_feature_rows(StoreWriter& store, const NodeFeatures& features, NodeId nodes) {
  Progress progress("writing features", nodes, "nodes");
  ArrayWriter writer = store.begin_array<float>("features", features.columns());
  const size_t columns = features.columns();
  Buffer<float> rows(std::min<size_t>(nodes, kRowsAtOnce) * columns);
  for (size_t at = 0; at < nodes; at += kRowsAtOnce) {
    throw_if_interrupted();
    const size_t count = std::min(kRowsAtOnce, nodes - at);
    parallel_blocks(count, kRowBlock, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        features.row(static_cast<NodeId>(at + i), std::span(&rows[i * columns], columns));
    });
    writer.append(std::span<const float>(rows.data(), count * columns));
    progress.advance(count);
  }
  store.end_array("features", writer);
  store.declare_features(FeatureMatrix::Kind::kDense32, features.columns());
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

void generate_store(const fs::path& target, const GenerateOptions& options, StagedDirectory::Existing existing) {
  const Shape shape = resolve_shape(options);
  const uint64_t seed = options.seed;
  StoreWriter store(target, existing);
  const Communities communities(shape, seed);
  const CsrGraph graph = generate_links(shape, communities, seed);
  store.write_graph(graph);

  std::vector<int32_t> classes;
  if (!shape.multi_label) classes = assign_classes(shape, communities, seed);
  Labels labels;
  {
    const NodeFeatures features(shape, communities, shape.features > 0 ? shape.features : kUnseenColumns, classes,
                                seed);
    if (shape.features > 0)
      write_feature_rows(store, features, shape.nodes);
    else
      store.declare_features(FeatureMatrix::Kind::kIdentity, shape.nodes);
    if (shape.multi_label) labels = Labels::multi(teach_labels(shape, graph, features, seed), shape.classes);
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
