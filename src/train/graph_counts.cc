#include "train/graph_counts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/row_blocks.h"
#include "train/standardise.h"

namespace cgcn {
namespace {

constexpr uint64_t kSampledRows = 5000;  // of features, evenly over the nodes

// With fewer labels than both, the network must be kept from overfitting them: smoothing over edges does more than
// weights can.
constexpr double kFewLabels = 0.1;       // of the nodes
constexpr uint64_t kFewPerClass = 100;   // training nodes
constexpr uint64_t kLeastCompared = 30;  // neighbours of whose classes a share says something

// Calls use(v) for all nodes in order, and gives the pages of their edges back.
template <class Use>
void for_each_node(const CsrGraph& graph, Use&& use) {
  const RowBlocks blocks(graph.offsets());
  for (size_t i = 0; i < blocks.count(); ++i) {
    for (size_t v = blocks.begin(i); v < blocks.end(i); ++v) use(static_cast<NodeId>(v));
    graph.release_rows(blocks.begin(i), blocks.end(i));
  }
}

void count_edges(const Dataset& data, GraphCounts& counts) {
  for_each_node(data.graph, [&](NodeId v) {
    if (data.role(v) != Role::kTrain) return;
    for (const NodeId u : data.graph.neighbours(v))
      if (u != v) ++(data.role(u) == Role::kTrain ? counts.training_edges : counts.joining_edges);
  });
  if (!data.graph.directed()) counts.training_edges /= 2;
}

// Of the edges whose two classes training may know. Where one class has most nodes, most edges join equal classes by
// chance: only what is above that says something of the edges.
void count_alike(const Dataset& data, GraphCounts& counts) {
  if (data.labels.multi_label() || data.labels.regression()) return;
  const auto is_known = [&](NodeId v) {
    return (data.role(v) == Role::kTrain || data.role(v) == Role::kValidation) && data.labels.class_of(v) >= 0;
  };
  std::vector<double> ends(counts.classes);
  uint64_t compared = 0, alike = 0;
  for_each_node(data.graph, [&](NodeId v) {
    if (!is_known(v)) return;
    for (const NodeId u : data.graph.neighbours(v)) {
      if (u == v || !is_known(u)) continue;
      ++compared;
      ++ends[static_cast<size_t>(data.labels.class_of(v))];
      alike += data.labels.class_of(u) == data.labels.class_of(v) ? 1 : 0;
    }
  });
  if (compared < kLeastCompared) return;
  double chance = 0;
  for (const double end : ends) chance += end / static_cast<double>(compared) * end / static_cast<double>(compared);
  const double share = static_cast<double>(alike) / static_cast<double>(compared);
  counts.homophily = chance < 1 ? std::max(0.0, (share - chance) / (1 - chance)) : 0;
}

// Sums of squared distances from the means, and of their products, without the loss of digits that sums of squares
// have.
struct Scatter {
  double count = 0, mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;

  void add(double x, double y = 0) {
    ++count;
    const double from_x = x - mean_x, from_y = y - mean_y;
    mean_x += from_x / count;
    mean_y += from_y / count;
    xx += from_x * (x - mean_x);
    yy += from_y * (y - mean_y);
    xy += from_x * (y - mean_y);
  }
};

// 1 - unexplained, without what so many numbers explain by chance; 0 if nothing varies.
double explained_share(double unexplained, double count, double numbers) {
  const double share = 1 - unexplained * (count - 1) / (count - numbers);
  return count > numbers && share > 0 ? std::min(1.0, share) : 0;
}

double log_degree(const Dataset& data, NodeId v) { return std::log1p(static_cast<double>(data.graph.degree(v))); }

double share_between_classes(const Dataset& data) {
  Scatter all;
  std::vector<Scatter> classes(data.labels.num_classes());
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (!data.is_trained_on(v)) continue;
    all.add(log_degree(data, v));
    classes[static_cast<size_t>(data.labels.class_of(v))].add(log_degree(data, v));
  }
  double within = 0, groups = 0;
  for (const Scatter& own : classes) {
    within += own.xx;
    groups += own.count > 0 ? 1 : 0;
  }
  return explained_share(within / all.xx, all.count, groups);
}

double share_of_values(const Dataset& data) {
  Scatter all;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    if (data.is_trained_on(v)) all.add(log_degree(data, v), data.labels.value_of(v));
  return explained_share(1 - all.xy * all.xy / (all.xx * all.yy), all.count, 2);
}

// Columns whose mean or deviation on a sample of the nodes is far from 0 and 1.
double share_of_uneven_columns(const FeatureMatrix& features) {
  const uint64_t rows = features.rows(), columns = features.columns(),
                 step = std::max<uint64_t>(1, rows / kSampledRows);
  std::vector<double> sum(columns), squares(columns);
  std::vector<float> row(columns);
  uint64_t sampled = 0;
  for (uint64_t v = 0; v < rows; v += step) {
    ++sampled;
    features.copy_row(static_cast<NodeId>(v), row.data());
    for (uint64_t c = 0; c < columns; ++c) {
      sum[c] += row[c];
      squares[c] += double{row[c]} * row[c];
    }
  }
  uint64_t uneven = 0;
  for (uint64_t c = 0; c < columns; ++c) {
    const double mean = sum[c] / static_cast<double>(sampled);
    const double deviation = std::sqrt(std::max(0.0, squares[c] / static_cast<double>(sampled) - mean * mean));
    uneven += deviation > 0 && (deviation < 0.5 || deviation > 2 || std::abs(mean) > deviation) ? 1 : 0;
  }
  return columns > 0 ? static_cast<double>(uneven) / static_cast<double>(columns) : 0;
}

}  // namespace

bool GraphCounts::neighbours_are_alike() const {
  constexpr double kAlike = 0.4;
  return homophily >= kAlike;
}

bool GraphCounts::labels_are_few() const {
  return labelled_share() < kFewLabels && labelled_per_class() < kFewPerClass;
}

bool GraphCounts::many_columns() const {
  return features != FeatureMatrix::Kind::kSparse && features != FeatureMatrix::Kind::kIdentity && columns > labelled;
}

bool GraphCounts::few_labels() const {
  return labels_are_few() && !multi_label && !regression && features != FeatureMatrix::Kind::kIdentity &&
         neighbours_are_alike();
}

GraphCounts count_graph(const Dataset& data) {
  GraphCounts counts;
  counts.nodes = data.num_nodes();
  counts.edges = data.graph.num_edges();
  counts.classes = data.labels.num_classes();
  counts.multi_label = data.labels.multi_label();
  counts.regression = data.labels.regression();
  counts.has_validation = data.split_sizes()[1] > 0;
  counts.training = data.split_sizes()[0];
  for (NodeId v = 0; v < data.num_nodes(); ++v) counts.labelled += data.is_trained_on(v) ? 1 : 0;
  if (data.labels.present()) {
    count_edges(data, counts);
    count_alike(data, counts);
    if (!counts.multi_label)
      counts.told_by_degree = counts.regression ? share_of_values(data) : share_between_classes(data);
  }
  counts.features = data.features.kind();
  counts.columns = data.features.columns();
  if (counts.features == FeatureMatrix::Kind::kSparse) counts.negative_entries = has_negative_values(data.features);
  if (data.features.is_dense())
    counts.uneven_columns = share_of_uneven_columns(data.features);
  else
    counts.entries_per_row =
        static_cast<double>(data.features.num_entries()) / std::max<NodeId>(1, data.features.rows());
  return counts;
}

}  // namespace cgcn
