#include "train/choices.h"

#include <algorithm>
#include <cmath>

#include "common/progress.h"
#include "train/standardise.h"

namespace cgcn {
namespace {

constexpr uint64_t kSampledRows = 5000;  // of features, evenly over the nodes

// With fewer labels than both, the network must be kept from overfitting them: smoothing over edges does more than
// weights can.
constexpr double kFewLabels = 0.1;       // of the nodes
constexpr uint64_t kFewPerClass = 100;   // training nodes
constexpr uint64_t kLeastCompared = 30;  // neighbours of whose classes a share says something
constexpr double kAlike = 0.4;           // homophily from which on neighbours are of use as they are
constexpr double kSomewhatAlike = 0.1;   // … if a node has nothing of its own, or if validation decides how much
constexpr uint64_t kOneBatch = 30'000;   // nodes that are trained on as one batch
constexpr uint64_t kNodesPerPart = 1000, kPartsPerBatch = 10;
constexpr uint64_t kLeastParts = 4;    // clusters that are worth a trial of them
constexpr double kToldByDegree = 0.1;  // share from which on a network that counts neighbours is worth a trial
constexpr uint64_t kSteps = 600;       // of the optimiser, if an epoch has several

// Graphs on which several networks are tried. On larger ones that takes longer than users wait without being asked.
constexpr uint64_t kMostTriedNodes = 300'000, kMostTriedEdges = 20'000'000;

constexpr NodeId kReleasedNodes = 1 << 16;  // whose pages are given back at a time

void count_edges(const Dataset& data, GraphCounts& counts) {
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (v % kReleasedNodes == 0 && v > 0) data.graph.release_rows(v - kReleasedNodes, v);
    if (data.role(v) != Role::kTrain) continue;
    for (const NodeId u : data.graph.neighbours(v))
      if (u != v) ++(data.role(u) == Role::kTrain ? counts.training_edges : counts.joining_edges);
  }
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
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (v % kReleasedNodes == 0 && v > 0) data.graph.release_rows(v - kReleasedNodes, v);
    if (!is_known(v)) continue;
    for (const NodeId u : data.graph.neighbours(v)) {
      if (u == v || !is_known(u)) continue;
      ++compared;
      ++ends[static_cast<size_t>(data.labels.class_of(v))];
      alike += data.labels.class_of(u) == data.labels.class_of(v) ? 1 : 0;
    }
  }
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

// Networks that differ in what they make of a node's own features and of its neighbours'.
enum class Network {
  kOwn,          // a node's own and its neighbours' mean are weighed apart: neighbours may be of other classes
  kOwnShallow,   // the same with less to learn: for weak features and few nodes
  kOwnDeep,      // the same with more layers and residual connections: for what is only seen from far
  kOwnFirm,      // the same, strongly regularised: for more feature columns than labels
  kOwnSum,       // neighbours are added up: for what depends on how many there are
  kOwnClusters,  // the same as the first on clusters though the graph would be one batch: the draw of links keeps from
                 // overfitting
  kSymmetric,    // Kipf and Welling's: neighbours are averaged, a node among them
  kSymmetricDeep,  // the same with a norm and residual connections
  kFewLabels,      // the same, wide and strongly regularised
};

const char* name_of(Network network) {
  switch (network) {
    case Network::kOwn:
      return "concat";
    case Network::kOwnShallow:
      return "shallow concat";
    case Network::kOwnDeep:
      return "deep concat";
    case Network::kOwnFirm:
      return "firm concat";
    case Network::kOwnSum:
      return "sum";
    case Network::kOwnClusters:
      return "concat on clusters";
    case Network::kSymmetric:
      return "symmetric";
    case Network::kSymmetricDeep:
      return "deep symmetric";
    case Network::kFewLabels:
      return "wide symmetric";
  }
  return "";
}

// Of a network other than the first: it is taken if it won.
std::string reason_of(Network network) {
  return fmt::format("the {} network does better on validation", name_of(network));
}

// The choices as they are made.
class Chooser {
 public:
  Chooser(const GraphCounts& counts, const RunOptions& known, const std::function<bool(const std::string&)>& is_set)
      : counts_(counts), known_(known), is_set_(is_set) {}

  std::vector<Candidate> candidates();

 private:
  template <class Value>
  void set(const std::string& option, const Value& value, const std::string& reason) {
    if (!is_set_(option)) choices_.push_back({option, fmt::format("{}", value), reason});
  }
  bool any_set(std::initializer_list<const char*> options) const {
    return std::any_of(options.begin(), options.end(), [&](const char* option) { return is_set_(option); });
  }
  std::vector<Network> others(Network first) const;
  std::vector<Choice> choose(Network network);
  void choose_nodes();
  void choose_features();
  void choose_symmetric_network(Network network);
  void choose_featureless_network();
  void choose_network(Network network);
  void choose_batches(Network network);
  void choose_steps();
  void choose_smoothing();
  bool may_copy_features() const;
  bool choose_rows(const std::string& reason);
  bool learns_neighbours() const;
  uint64_t steps_per_epoch() const;
  uint32_t planned_epochs() const;
  uint64_t trained_nodes() const { return transductive_ ? counts_.nodes : counts_.training; }

  const GraphCounts& counts_;
  const RunOptions& known_;
  const std::function<bool(const std::string&)>& is_set_;
  std::vector<Choice> choices_;
  bool transductive_ = false;
  uint64_t batches_ = 1;  // per epoch
};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// That are worth a trial next to the first. Without features it is at most one, without validation nodes to compare
// them on none.
std::vector<Network> Chooser::others(Network first) const {
  const bool large = trained_nodes() > kMostTriedNodes || counts_.edges > kMostTriedEdges;
  if (!counts_.has_validation || large || known_.method.method != Method::kCluster || known_.memory.given() ||
      trial_epochs(planned_epochs()) == 0)
    return {};  // a budget decides whether a network fits, never which one is taken
  std::vector<Network> others;
  if (counts_.told_by_degree >= kToldByDegree &&
      !any_set({"normalisation", "input-normalisation", "first-layer", "input-projection"}))
    others.push_back(Network::kOwnSum);
  if (counts_.features == FeatureMatrix::Kind::kIdentity) return others;
  if (first == Network::kFewLabels) {
    others.insert(others.end(), {Network::kSymmetricDeep, Network::kOwnShallow});
    return others;
  }
  if (first == Network::kOwnFirm) others.push_back(Network::kOwn);
  others.insert(others.end(), {Network::kOwnShallow, Network::kOwnDeep, Network::kSymmetric, Network::kSymmetricDeep});
  if (batches_ == 1 && trained_nodes() / kNodesPerPart >= kLeastParts) others.push_back(Network::kOwnClusters);
  return others;
}

std::vector<Candidate> Chooser::candidates() {
  const Network first = counts_.few_labels()     ? Network::kFewLabels
                        : counts_.many_columns() ? Network::kOwnFirm
                                                 : Network::kOwn;
  std::vector<Candidate> candidates = {{name_of(first), choose(first)}};
  for (const Network network : others(first)) {
    Candidate candidate{name_of(network), choose(network)};
    const auto is_same = [&](const Candidate& other) { return other.choices == candidate.choices; };
    if (std::none_of(candidates.begin(), candidates.end(), is_same)) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::vector<Choice> Chooser::choose(Network network) {
  choices_.clear();
  batches_ = 1;
  choose_nodes();
  choose_features();
  choose_batches(network);
  if (learns_neighbours() && network != Network::kOwnSum)
    choose_featureless_network();
  else if (network >= Network::kSymmetric)
    choose_symmetric_network(network);
  else if (counts_.features != FeatureMatrix::Kind::kIdentity)
    choose_network(network);
  if (network == Network::kOwnSum) {
    set("normalisation", "sum", reason_of(network));
    const auto projects = [](const Choice& choice) { return choice.option == "input-projection"; };
    if (std::none_of(choices_.begin(), choices_.end(), projects)) set("input-normalisation", "sum", reason_of(network));
  }
  choose_steps();
  choose_smoothing();
  if (counts_.multi_label && counts_.has_validation)
    set("thresholds", "validation", "validation tells from which probability on a label is right");
  return std::move(choices_);
}

// Where edges join the training nodes to others, these are in the same graph, and their features and edges help.
void Chooser::choose_nodes() {
  transductive_ = known_.partition.transductive;
  if (counts_.joining_edges == 0 || is_set_("transductive")) return;
  transductive_ = true;
  const uint64_t seen = counts_.joining_edges + counts_.training_edges;
  set("transductive", "true",
      fmt::format("{} of the training nodes' edges lead to other nodes: all are in one graph",
                  percent(static_cast<double>(counts_.joining_edges) / static_cast<double>(seen))));
}

// Scaled features are copies in memory.
bool Chooser::may_copy_features() const {
  constexpr double kMostCopied = 250e6;  // values
  const bool sparse = counts_.features == FeatureMatrix::Kind::kSparse;
  const double per_row = sparse ? counts_.entries_per_row : static_cast<double>(counts_.columns);
  return static_cast<double>(counts_.nodes) * per_row <= kMostCopied && !known_.memory.given();
}

void Chooser::choose_features() {
  constexpr double kMany = 0.1;
  if (!may_copy_features() || known_.train.normalise_rows) return;
  if (counts_.uneven_columns > kMany)
    set("standardise", "true",
        fmt::format("{} of the feature columns are far from mean 0, deviation 1", percent(counts_.uneven_columns)));
}

// Rows of words are brought to one length: long ones would decide what is learnt. Returns whether they are.
bool Chooser::choose_rows(const std::string& reason) {
  const bool words = counts_.features == FeatureMatrix::Kind::kSparse && !counts_.negative_entries;
  const bool chosen = words && may_copy_features() && !any_set({"normalise-rows", "standardise"});
  if (chosen) set("normalise-rows", "true", reason);
  return chosen || known_.train.normalise_rows;
}

// Kipf and Welling's form: with few labels, wide and strongly regularised.
void Chooser::choose_symmetric_network(Network network) {
  const bool few = network == Network::kFewLabels, deep = network == Network::kSymmetricDeep;
  const std::string reason =
      few ? fmt::format("{} training nodes per class, {} of all nodes, and neighbours are alike",
                        format_count(counts_.labelled_per_class()), percent(counts_.labelled_share()))
          : reason_of(network);
  if (!is_set_("fanout")) set("layers", deep ? 5 : 2, reason);  // which has a number for each layer
  set("hidden", deep ? 128 : 256, reason);
  set("conv", "plain", reason);
  set("normalisation", "symmetric", reason);
  set("input-normalisation", "symmetric", reason);
  if (!deep)
    set("layer-norm", "false", reason);
  else if (batches_ == 1 && !is_set_("layer-norm"))
    set("batch-norm", "true", reason);
  if (deep) set("residual", "true", reason);
  set("bias", "true", reason);
  set("dropout", few ? 0.8 : 0.5, reason);
  const bool rows = choose_rows(reason);
  set("weight-decay", !few ? 0.0005 : rows ? 0.001 : 0.01, reason);
  set("lr", !few || rows ? 0.01 : 0.002, reason);
  if (!deep) set("decay-scope", "first-layer", reason);
  if (counts_.features == FeatureMatrix::Kind::kSparse) set("dense-adam", "true", reason);
}

// Without features, a node is told by its neighbours alone, if these are alike at all or nobody knows.
bool Chooser::learns_neighbours() const {
  return counts_.features == FeatureMatrix::Kind::kIdentity && !counts_.multi_label && !counts_.regression &&
         (counts_.homophily < 0 || counts_.homophily >= kSomewhatAlike) && (batches_ == 1 || counts_.labels_are_few());
}

// Kipf and Welling's own: a row of weights per node is learnt from the labels in reach alone. If they are few, more
// layers reach more of them, unless what comes from far says little.
void Chooser::choose_featureless_network() {
  const bool far = counts_.labels_are_few() && counts_.homophily >= kAlike;
  const std::string reason = fmt::format(
      "no features, {} of the nodes have a label to learn from{}", percent(counts_.labelled_share()),
      counts_.homophily < 0 ? ""
                            : fmt::format(", and neighbours are alike ({} above chance)", percent(counts_.homophily)));
  if (!is_set_("fanout")) set("layers", far ? 4 : 2, reason);
  set("hidden", 64, reason);
  set("conv", "plain", reason);
  set("normalisation", "symmetric", reason);
  set("layer-norm", "false", reason);
  set("dropout", 0.5, reason);
  // Dropout of whole nodes before they are aggregated, which one batch allows in layer 1 too.
  set("dropout-place", "before", reason);
  if (batches_ == 1 && !any_set({"method", "dropout-place", "input-projection", "input-normalisation"}))
    set("first-layer", "batch", reason);
  else
    set("input-normalisation", "symmetric", reason);
  set("weight-decay", 0.0005, reason);
  set("decay-scope", "first-layer", reason);
  set("dense-adam", "true", reason);
}

// BatchNorm where one batch is the whole graph, whose statistics are those of inference; clusters differ in them.
// Behind a projection of many columns its running statistics take a hundred steps to come near those of a batch.
void Chooser::choose_network(Network network) {
  constexpr uint64_t kWide = 512, kVeryWide = 2000;  // feature columns
  const std::string columns =
      fmt::format("{} feature column{}", format_count(counts_.columns), counts_.columns == 1 ? "" : "s");
  // vrgcn keeps no history of features.
  const bool projects = counts_.columns >= kVeryWide && known_.method.method != Method::kVrGcn &&
                        !any_set({"first-layer", "input-normalisation", "input-projection"});
  if (projects) set("input-projection", "true", columns + " become few before they are aggregated");
  if (batches_ == 1 && !projects && !known_.model.input_projection && !is_set_("layer-norm"))
    set("batch-norm", "true", "one batch: its statistics are the graph's");
  const bool firm = network == Network::kOwnFirm, shallow = network == Network::kOwnShallow || firm,
             deep = network == Network::kOwnDeep;
  const std::string tried =
      firm ? fmt::format("{}, more than the {} labelled training nodes", columns, format_count(counts_.labelled))
           : reason_of(network);
  set("dropout", !shallow && counts_.columns < kWide ? 0.3 : 0.5, shallow ? tried : columns);
  if (deep) set("residual", "true", tried);
  if (counts_.columns < kWide) set("input-dropout", 0, columns + ", each of which may matter");
  if (batches_ == 1) set("hidden", 128, "one batch");
  const std::string words =
      fmt::format("{} sparse feature columns without negative values: words", format_count(counts_.columns));
  const bool rows = choose_rows(words);
  // Two layers have no residual connection.
  const bool may_set_layers = !is_set_("fanout") && !(firm && any_set({"residual", "initial-residual"}));
  if (may_set_layers && (shallow || deep))
    set("layers", deep ? 5 : 2, tried);
  else if (may_set_layers && rows)
    set("layers", 2, words + " say most by themselves");
  if (firm) {
    if (!is_set_("weight-decay") && (!is_set_("layers") || known_.model.layers > 1))
      set("decay-scope", "first-layer", tried);
    set("weight-decay", 0.01, tried);
  } else if (rows || shallow) {
    set("weight-decay", 0.0005, rows ? words + " are many to learn weights for" : tried);
  }
  if (rows) set("lr", 0.005, words);
}

void Chooser::choose_batches(Network network) {
  const uint64_t nodes = trained_nodes();
  const bool may_be_one = !any_set({"method", "parts", "per-batch", "partitioner", "from", "batches-per-step"}) &&
                          !known_.memory.given() && known_.train.batches_per_step == 1;
  if (nodes <= kOneBatch && may_be_one && network != Network::kOwnClusters)
    return set("method", "full-batch", fmt::format("{} nodes make one batch", format_count(nodes)));
  if (known_.method.method == Method::kFullBatch) return;
  if (!known_.method.uses_clusters()) {
    batches_ = 1 + counts_.labelled / std::max(1u, known_.method.targets);
    return;
  }
  const bool set_by_hand = any_set({"parts", "per-batch", "from"});
  const uint64_t parts = set_by_hand ? known_.partition.parts_of(nodes) : std::max<uint64_t>(1, nodes / kNodesPerPart);
  const uint64_t per_batch = set_by_hand ? known_.train.clusters_per_batch(static_cast<uint32_t>(parts))
                                         : std::clamp<uint64_t>(parts / 4, 1, kPartsPerBatch);
  batches_ = (parts + per_batch - 1) / per_batch;
  if (set_by_hand) return;
  const bool tried = network == Network::kOwnClusters;
  set("parts", parts,
      tried ? reason_of(network) : fmt::format("{} nodes, about {} per cluster", format_count(nodes), kNodesPerPart));
  set("per-batch", per_batch, tried ? reason_of(network) : fmt::format("{} batches per epoch", format_count(batches_)));
}

uint64_t Chooser::steps_per_epoch() const {
  const uint64_t per_step = known_.train.batches_per_step;
  return (batches_ + per_step - 1) / per_step;
}

// As many steps for a graph of any size, but at least so many epochs: the time grows with the graph.
uint32_t Chooser::planned_epochs() const {
  constexpr uint64_t kMost = 200, kLeast = 30;
  if (is_set_("epochs")) return known_.train.epochs;
  return static_cast<uint32_t>(
      steps_per_epoch() == 1 ? kMost : std::clamp<uint64_t>(kSteps / steps_per_epoch(), kLeast, kMost));
}

void Chooser::choose_steps() {
  const uint64_t asked = planned_epochs(), steps = steps_per_epoch();
  const std::string reason = fmt::format("{} steps", format_count(asked * steps));
  set("epochs", asked, reason);
  if (asked < 10 || learns_neighbours()) return;  // which a constant rate takes further
  set("schedule", "cosine", reason);
  if (!counts_.few_labels()) set("warmup", asked / 20, reason);
}

// What training labels say about their neighbours, added to the model's output. Validation decides whether, and how
// much. Not with weights of classes, which it would undo: spread labels are mostly those of the large classes.
void Chooser::choose_smoothing() {
  constexpr uint64_t kMostValues = 250'000'000;  // nodes times classes
  if (!transductive_ || !counts_.has_validation || counts_.regression || known_.train.class_weights != "none" ||
      counts_.nodes * counts_.classes > kMostValues)
    return;
  if (counts_.multi_label)
    set("smooth", "both", "labels of neighbours are known; validation decides how much they count");
  else if (counts_.homophily < 0)
    set("smooth", "both", "few edges join known labels; validation decides how much labels of neighbours count");
  else if (counts_.homophily >= kSomewhatAlike)
    set("smooth", "both",
        fmt::format("neighbours are alike ({} above chance): validation decides how much their labels count",
                    percent(counts_.homophily)));
}

}  // namespace

bool GraphCounts::labels_are_few() const {
  return labelled_share() < kFewLabels && labelled_per_class() < kFewPerClass;
}

bool GraphCounts::many_columns() const {
  return features != FeatureMatrix::Kind::kSparse && features != FeatureMatrix::Kind::kIdentity && columns > labelled;
}

bool GraphCounts::few_labels() const {
  return labels_are_few() && !multi_label && !regression && features != FeatureMatrix::Kind::kIdentity &&
         homophily >= kAlike;
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

std::vector<Candidate> candidate_settings(const GraphCounts& counts, const RunOptions& known,
                                          const std::function<bool(const std::string&)>& is_set) {
  if (counts.labelled == 0) return {{}};  // training refuses it
  return Chooser(counts, known, is_set).candidates();
}

uint32_t trial_epochs(uint32_t epochs) {
  constexpr uint32_t kLeast = 9, kMost = 60;
  const auto tried = static_cast<uint32_t>(uint64_t{epochs} * 3 / 10);
  return tried < kLeast ? 0 : std::min(tried, kMost);
}

}  // namespace cgcn
