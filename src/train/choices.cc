#include "train/choices.h"

#include <algorithm>
#include <cmath>

#include "common/progress.h"
#include "graph/statistics.h"

namespace cgcn {
namespace {

constexpr uint64_t kSampledRows = 5000;  // of dense features, evenly over the nodes

// Shares of labels: below the first the model must be kept from learning them by heart.
constexpr double kFewLabels = 0.1;
constexpr uint64_t kFewPerClass = 100;

void count_edges(const Dataset& data, GraphCounts& counts) {
  uint64_t alike = 0, compared = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (data.role(v) != Role::kTrain) continue;
    for (const NodeId u : data.graph.neighbours(v)) {
      if (u == v) continue;
      if (data.role(u) != Role::kTrain) {
        ++counts.joining_edges;
        continue;
      }
      ++counts.training_edges;
      if (data.labels.multi_label() || data.labels.class_of(v) < 0 || data.labels.class_of(u) < 0) continue;
      ++compared;
      alike += data.labels.class_of(u) == data.labels.class_of(v) ? 1 : 0;
    }
  }
  counts.training_edges /= 2;
  if (compared > 0) counts.homophily = static_cast<double>(alike) / static_cast<double>(compared);
}

// Columns whose mean or deviation on a sample of the nodes is far from 0 and 1.
double share_of_uneven_columns(const FeatureMatrix& features) {
  const uint64_t rows = features.rows(), columns = features.columns(),
                 step = std::max<uint64_t>(1, rows / kSampledRows);
  std::vector<double> sum(columns), squares(columns);
  std::vector<float> row(columns);
  uint64_t sampled = 0;
  for (uint64_t v = 0; v < rows; v += step, ++sampled) {
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

// The choices as they are made.
class Chooser {
 public:
  Chooser(const GraphCounts& counts, const RunOptions& known, const std::function<bool(const std::string&)>& is_set)
      : counts_(counts), known_(known), is_set_(is_set) {}

  std::vector<Choice> choose();

 private:
  template <class Value>
  void set(const std::string& option, const Value& value, const std::string& reason) {
    if (!is_set_(option)) choices_.push_back({option, fmt::format("{}", value), reason});
  }
  bool any_set(std::initializer_list<const char*> options) const {
    return std::any_of(options.begin(), options.end(), [&](const char* option) { return is_set_(option); });
  }
  void choose_nodes();
  void choose_features();
  void choose_network();
  void choose_batches();
  void choose_steps();

  const GraphCounts& counts_;
  const RunOptions& known_;
  const std::function<bool(const std::string&)>& is_set_;
  std::vector<Choice> choices_;
  bool transductive_ = false;
};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::vector<Choice> Chooser::choose() {
  choose_nodes();
  choose_features();
  choose_network();
  choose_batches();
  choose_steps();
  return std::move(choices_);
}

// Where edges join the training nodes to others, these are in the same graph, and their features and edges help.
void Chooser::choose_nodes() {
  transductive_ = known_.partition.transductive;
  if (counts_.joining_edges == 0 || is_set_("transductive")) return;
  transductive_ = true;
  const double share =
      static_cast<double>(counts_.joining_edges) / static_cast<double>(counts_.joining_edges + counts_.training_edges);
  set("transductive", "true",
      fmt::format("{} of the training nodes' edges lead to other nodes, which are in the same graph", percent(share)));
}

void Chooser::choose_features() {
  constexpr double kMany = 0.1;
  if (counts_.uneven_columns > kMany && !known_.train.normalise_rows)
    set("standardise", "true",
        fmt::format("{} of the feature columns have another scale than mean 0, deviation 1",
                    percent(counts_.uneven_columns)));
}

void Chooser::choose_network() {
  if (counts_.few_labels()) {
    const std::string reason =
        fmt::format("few labels: {} training nodes per class, {} of the nodes",
                    format_count(counts_.labelled_per_class()), percent(counts_.labelled_share()));
    set("layers", 2, reason);
    set("hidden", 128, reason);
    set("conv", "plain", reason);
    set("normalisation", "symmetric", reason);
    set("input-normalisation", "symmetric", reason);
    set("layer-norm", "false", reason);
    set("bias", "true", reason);
    set("dropout", 0.8, reason);
    set("weight-decay", 0.01, reason);
    set("decay-scope", "first-layer", reason);
    set("dense-adam", "true", reason);
    return;
  }
  const std::string reason = fmt::format("{} training nodes", format_count(counts_.labelled));
  set("dropout", 0.5, reason);
  if (counts_.nodes < 50000) set("layers", 2, "a small graph");
}

void Chooser::choose_batches() {
  if (!known_.method.uses_clusters() || any_set({"parts", "per-batch", "from"})) return;
  const uint64_t nodes = transductive_ ? counts_.nodes : counts_.labelled;
  const uint64_t parts = std::max<uint64_t>(10, nodes / 1000);
  const uint64_t per_batch = counts_.few_labels() ? 1 : std::clamp<uint64_t>(parts / 5, 1, 10);
  set("parts", std::min(parts, nodes), fmt::format("{} nodes to train on", format_count(nodes)));
  set("per-batch", per_batch, fmt::format("{} batches per epoch", parts / per_batch));
}

void Chooser::choose_steps() {
  set("schedule", "cosine", "the rate falls to 0 in the time that is planned");
  set("lr", counts_.few_labels() ? 0.002 : 0.005, "with the cosine schedule");
  const uint64_t epochs = std::clamp<uint64_t>(20'000'000 / counts_.nodes, 30, 200);
  set("epochs", epochs, fmt::format("{} nodes", format_count(counts_.nodes)));
}

}  // namespace

bool GraphCounts::few_labels() const { return labelled_share() < kFewLabels && labelled_per_class() < kFewPerClass; }

GraphCounts count_graph(const Dataset& data) {
  GraphCounts counts;
  counts.nodes = data.num_nodes();
  counts.edges = data.graph.num_edges();
  counts.classes = data.labels.num_classes();
  counts.multi_label = data.labels.multi_label();
  counts.has_validation = data.split_sizes()[1] > 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v) counts.labelled += data.is_trained_on(v) ? 1 : 0;
  if (data.labels.present()) count_edges(data, counts);
  counts.features = data.features.kind();
  counts.columns = data.features.columns();
  if (data.features.is_dense())
    counts.uneven_columns = share_of_uneven_columns(data.features);
  else
    counts.entries_per_row =
        static_cast<double>(data.features.num_entries()) / std::max<NodeId>(1, data.features.rows());
  return counts;
}

std::vector<Choice> choose_settings(const GraphCounts& counts, const RunOptions& known,
                                    const std::function<bool(const std::string&)>& is_set) {
  if (counts.labelled == 0) return {};  // training refuses it
  return Chooser(counts, known, is_set).choose();
}

}  // namespace cgcn
