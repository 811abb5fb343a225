#include "train/choices.h"

#include <algorithm>

#include "common/progress.h"

namespace cgcn {
namespace {

// Homophily from which on neighbours are of use if a node has nothing of its own, or if validation decides how much.
constexpr double kSomewhatAlike = 0.1;
constexpr uint64_t kOneBatch = 30'000;  // nodes that are trained on as one batch
constexpr uint64_t kNodesPerPart = 1000, kPartsPerBatch = 10;
constexpr uint64_t kLeastParts = 4;    // clusters that are worth a trial of them
constexpr double kToldByDegree = 0.1;  // share from which on a network that counts neighbours is worth a trial
constexpr uint64_t kSteps = 600;       // of the optimiser, if an epoch has several

// Graphs on which several networks are tried. On larger ones that takes longer than users wait without being asked.
constexpr uint64_t kMostTriedNodes = 300'000, kMostTriedEdges = 20'000'000;

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
  const bool far = counts_.labels_are_few() && counts_.neighbours_are_alike();
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
