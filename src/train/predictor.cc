#include "train/predictor.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "common/error.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/progress.h"
#include "partition/kept_product.h"
#include "train/neighbourhood.h"
#include "train/run_directory.h"

namespace cgcn {
namespace {

void require_same_features(const SavedModel& saved, const Dataset& data) {
  const ModelShape& shape = saved.shape;
  const auto refuse = [&](const std::string& what, const std::string& hint = {}) -> void {
    throw Error(what, data.path.string(), hint);
  };
  const bool identity = data.features.kind() == FeatureMatrix::Kind::kIdentity;
  const bool same_graph = data.content_hash == saved.trained_on.content_hash;
  if (saved.trained_on.identity && !same_graph)
    refuse("the model learnt a vector for every node of a graph without features, and knows no other graph",
           fmt::format("the graph that it was trained on, {}; for others, train on a graph with features",
                       saved.trained_on.store));
  if (identity && !same_graph)
    refuse(fmt::format("has no features, and the model was trained on {} of them", shape.input_columns),
           "import the graph with the same features");
  if (saved.scaling.columns.empty() && data.features.columns() != shape.input_columns)
    refuse(fmt::format("has {} feature column{}, but the model was trained on {}", data.features.columns(),
                       data.features.columns() == 1 ? "" : "s", shape.input_columns));
  if (data.features.is_dense() == shape.sparse_input)
    refuse(fmt::format("has {} features, but the model was trained on {} ones", shape.sparse_input ? "dense" : "sparse",
                       shape.sparse_input ? "sparse" : "dense"));
  if (!saved.scaling.columns.empty() && !data.features.is_dense())
    refuse("its sparse feature columns are not those that the model was trained on, or have another order",
           "give it the columns of the training graph, in the same order");
}

// Means that filled missing values, if this graph and the model's own have others.
void warn_of_other_fills(const SavedModel& saved, const Dataset& data) {
  std::vector<std::string> differing;
  for (const ColumnEncoding& trained : saved.trained_on.encoding)
    for (const ColumnEncoding& column : data.encoding)
      if (column.name == trained.name && !column.one_hot && column.fill != trained.fill)
        differing.push_back(column.name);
  if (!differing.empty())
    log::warn(
        "{}: missing values of {} were filled with other numbers than in the training graph; import it with "
        "--like {}",
        data.path.string(), list_some(differing), saved.trained_on.store);
}

// Which column of the graph each of the model's inputs is, by name; empty: all in their order.
std::vector<uint32_t> match_columns(const SavedModel& saved, const Dataset& data) {
  const std::vector<std::string>&trained = saved.trained_on.feature_names, &found = data.feature_names;
  const bool same_content = data.content_hash == saved.trained_on.content_hash;  // whatever the columns are called
  if ((same_content && trained == found) || (trained.empty() && found.empty())) return {};
  if (trained.empty() || found.empty()) {
    log::warn("feature columns are matched by position: {} have no names",
              trained.empty() ? "those of the model" : "those of " + data.path.string());
    return {};
  }
  warn_of_other_fills(saved, data);
  if (trained == found) return {};
  std::unordered_map<std::string_view, uint32_t> place;
  for (uint32_t c = 0; c < found.size(); ++c) place.emplace(found[c], c);
  std::vector<uint32_t> columns;
  std::vector<std::string> absent;
  for (const std::string& name : trained) {
    if (const auto at = place.find(name); at != place.end()) {
      columns.push_back(at->second);
      place.erase(at);
    } else {
      absent.push_back(name);
    }
  }
  if (!absent.empty())
    throw Error(fmt::format("has no feature column {}, which the model was trained on", list_some(absent)),
                data.path.string(), fmt::format("import it with --like {}", saved.trained_on.store));
  std::vector<std::string> unused;
  for (const std::string& name : found)
    if (place.contains(name)) unused.push_back(name);
  if (unused.empty())
    log::note("feature columns are in another order than in training: matched by name");
  else
    log::note("feature columns are matched by name; the model does not know {}", list_some(unused));
  return columns;
}

bool are_numbers(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
  });
}

// Classes that are numbers are matched by them: an import names those of a graph without class 0 by the numbers that
// occur. A number that the model does not know leaves everything as it is, to be refused.
void match_classes(const SavedModel& saved, Dataset& data) {
  const std::vector<std::string>&trained = saved.trained_on.class_names, &found = data.class_names;
  const Labels& labels = data.labels;
  if (!labels.present() || labels.multi_label() || labels.regression() || saved.shape.multi_label ||
      saved.shape.regression || trained == found || !are_numbers(trained) || !are_numbers(found))
    return;
  std::unordered_map<std::string, int32_t> place;
  for (uint32_t c = 0; c < saved.shape.num_classes; ++c)
    place.emplace(c < trained.size() ? trained[c] : std::to_string(c), static_cast<int32_t>(c));
  std::vector<int32_t> classes(labels.classes().begin(), labels.classes().end());
  for (int32_t& label : classes) {
    if (label < 0) continue;
    const auto known = place.find(data.class_name(static_cast<uint32_t>(label)));
    if (known == place.end()) return;
    label = known->second;
  }
  data.labels = Labels::single(std::move(classes), saved.shape.num_classes);
  data.class_names = trained;
}

// The store that was given, or the one that the model remembers.
Store open_store(const SavedModel& saved, const fs::path& given) {
  if (!given.empty()) return Store(given);
  std::error_code problem;
  if (!fs::exists(saved.trained_on.store, problem))
    throw Error("the graph store that the model was trained on no longer exists", saved.trained_on.store,
                "if it was moved, give its path after the run");
  return Store(saved.trained_on.store);
}

// Its weights, and the gradients that a model has room for; what fits in the margin is left to the evaluation's own
// plan, which names the smallest budget. A run has two models that may be the one to use.
void require_memory_for(const fs::path& run, uint64_t budget) {
  uint64_t largest = 0;
  std::error_code problem;
  const RunFiles files(run);
  for (const fs::path& file : {run, files.best(), files.last()})
    if (fs::is_regular_file(file, problem)) largest = std::max<uint64_t>(largest, fs::file_size(file, problem));
  if (memory_left(budget) + kMemoryMargin < 2 * largest)
    throw Error(fmt::format("is too little for a model of {}", format_bytes(largest)), "--memory",
                fmt::format("more than {}", format_bytes(memory_figures().rss + kMemoryMargin + 2 * largest)));
}

SavedModel load_within(const fs::path& run, uint64_t budget, const PrecisionOptions& precision) {
  require_memory_for(run, budget);
  return load_model(kept_checkpoint(run), precision);
}

}  // namespace

Predictor::Predictor(const fs::path& run, const fs::path& store, const MemoryOptions& memory, dist::Group& group,
                     const PrecisionOptions& precision)
    : group_(group),
      memory_(memory.budget(group.ranks_on_this_host())),
      saved_(load_within(run, memory_, precision)),
      store_(open_store(saved_, store)),
      data_(store_.dataset()) {
  fit_model_to_data();
}

Predictor::Predictor(const fs::path& run, Store store, const MemoryOptions& memory, const PrecisionOptions& precision)
    : group_(dist::no_group()),
      memory_(memory.budget()),
      saved_(load_within(run, memory_, precision)),
      store_(std::move(store)),
      data_(store_.dataset()) {
  fit_model_to_data();
}

void Predictor::fit_model_to_data() {
  saved_.scaling.columns = match_columns(saved_, data_);
  require_same_features(saved_, data_);
  match_classes(saved_, data_);
  std::error_code problem;
  if (data_.content_hash != saved_.trained_on.content_hash &&
      fs::equivalent(store_.path(), saved_.trained_on.store, problem))
    log::warn("{} has changed since the model was trained: what it was trained on may be among its test nodes now",
              store_.path().string());
}

std::string Predictor::class_name(uint32_t label) const {
  const std::vector<std::string>& names = saved_.trained_on.class_names;
  return label < names.size() ? names[label] : std::to_string(label);
}

int32_t Predictor::class_number(uint32_t label) const {
  const std::vector<std::string>& names = saved_.trained_on.class_names;
  return label < names.size() && are_numbers(names) ? std::stoi(names[label]) : static_cast<int32_t>(label);
}

const PreparedFeatures& Predictor::features(Smoothing smoothing) {
  if (features_) return *features_;
  group_.together([&] { require_memory(smoothing); });
  group_.in_turn([&] {
    features_ =
        prepare_features(store_, data_, saved_.options.evaluated_product(), saved_.scaling, memory_left(memory_));
  });
  return *features_;
}

// For A·X, if it has to be computed, and for the inference: refused before either begins.
uint64_t Predictor::least_memory(Smoothing smoothing) const {
  const uint64_t inference = least_evaluation_memory(*saved_.model, data_, smoothing, group_.size());
  const uint64_t copies = saved_.scaling.copied_bytes(data_.features, true);
  return copies + std::max(inference, least_aggregation_memory(data_));
}

void Predictor::require_memory(Smoothing smoothing) const {
  if (const uint64_t least = least_memory(smoothing); memory_for_inference() < least)
    refuse_memory_left(least, fmt::format("an exact evaluation of {} nodes", format_count(data_.num_nodes())));
}

void Predictor::require_room_for(uint64_t bytes, const std::string& what) const {
  if (memory_for_inference() < bytes) refuse_memory_left(std::max(bytes, least_memory(Smoothing::kNone)), what);
}

void Predictor::release_pages() const { store_.release_pages(); }

void Predictor::require_same_on_all_ranks() const {
  group_.require_same("the content of the graph store " + store_.path().string(), data_.content_hash,
                      "copy it again to the hosts where it differs");
  const std::span<const float> values = saved_.model->values();
  group_.require_same("the model", hex64(checksum(values.data(), values.size_bytes())),
                      "copy the run to the hosts where it differs");
}

void Predictor::require_comparable() const {
  const ModelShape& shape = saved_.shape;
  if (!data_.labels.present()) throw Error("has no labels to compare with", data_.path.string());
  if (data_.labels.regression() != shape.regression)
    throw Error(shape.regression ? "has classes, but the model predicts numbers"
                                 : "has labels that are numbers, but the model predicts classes",
                data_.path.string());
  if (data_.labels.num_classes() != shape.num_classes || data_.labels.multi_label() != shape.multi_label)
    throw Error(fmt::format("has {} classes{}, but the model was trained on {}{}", data_.labels.num_classes(),
                            data_.labels.multi_label() ? " (multi-label)" : "", shape.num_classes,
                            shape.multi_label ? " (multi-label)" : ""),
                data_.path.string(), "import it with --like " + saved_.trained_on.store);
  const std::vector<std::string>& trained = saved_.trained_on.class_names;
  if (trained.empty() != data_.class_names.empty() && !shape.regression)
    log::warn("classes are matched by number: {} have no names",
              trained.empty() ? "those of the model" : "those of " + data_.path.string());
  if (!trained.empty() && !data_.class_names.empty() && trained != data_.class_names)
    throw Error("its classes have other names, or another order, than those the model was trained on",
                data_.path.string(), "import it with --like " + saved_.trained_on.store);
}

// That there are labels to smooth by, of the model's own classes.
void Predictor::require_smoothing() const {
  require_comparable();
  require_smoothable(data_);
}

Smoothing Predictor::smoothing(Smoothing asked) const {
  if (asked != Smoothing::kTrained) return asked;
  const ModelShape& shape = saved_.shape;
  const Smoothing trained = shape.regression ? Smoothing::kNone : saved_.options.train.smooth;
  const std::vector<std::string>& names = saved_.trained_on.class_names;
  const bool same_classes = data_.labels.num_classes() == shape.num_classes &&
                            data_.labels.multi_label() == shape.multi_label &&
                            (names.empty() || data_.class_names.empty() || names == data_.class_names);
  if (trained == Smoothing::kNone || (same_classes && is_smoothable(data_))) return trained;
  log::note("no smoothing, which the model was tested with: {} has no labels of training and validation nodes",
            data_.path.string());
  return Smoothing::kNone;
}

Evaluation Predictor::evaluate(const EvaluationOptions& options, Smoothing asked) {
  const Smoothing smoothing = asked == Smoothing::kTrained && options.kind == EvaluationKind::kClusters
                                  ? Smoothing::kNone
                                  : this->smoothing(asked);
  group_.together([&] {
    require_comparable();
    if (smoothing == Smoothing::kNone) return;
    require_smoothing();
    if (options.kind == EvaluationKind::kClusters)
      throw Error("spreads labels on the whole graph, which blocks are not", "--smooth",
                  "leave it or --evaluation blocks out");
  });
  Evaluation evaluation = score(options, smoothing);
  if (evaluation.test.scores().nodes + evaluation.validation.scores().nodes + evaluation.train.scores().nodes == 0)
    throw dist::GroupError("no node has both a label and a place in the split: nothing to score", data_.path.string(),
                           "import the graph with --split 0/0/100, or with its own split");
  return evaluation;
}

Evaluation Predictor::score(const EvaluationOptions& options, Smoothing smoothing) {
  if (options.kind == EvaluationKind::kClusters) {
    std::optional<ClusterEvaluator> evaluator;
    group_.in_turn([&] { evaluator.emplace(store_, saved_.options, saved_.scaling, options.clusters, memory_); });
    return group_.together([&] { return evaluator->evaluate(*saved_.model, saved_.rule); });
  }
  const InferenceInput input = inference_input(smoothing);
  return evaluate_exactly(*saved_.model, input, data_, memory_for_inference(), true,
                          {.ranks = true, .rule = saved_.rule, .smoothing = request_for(smoothing)});
}

InferenceInput Predictor::inference_input(Smoothing smoothing) {
  const PreparedFeatures& prepared = features(smoothing);
  if (!share_) share_.emplace(group_, data_.graph);
  return {data_.graph, prepared.x, prepared.aggregated, &*share_, order(smoothing)};
}

// By the clusters of the training, if this is its graph and memory has room for it.
const InferenceOrder* Predictor::order(Smoothing smoothing) {
  if (group_.size() > 1 || data_.content_hash != saved_.trained_on.content_hash ||
      !InferenceOrder::helps(uint64_t{data_.num_nodes()} * saved_.options.model.hidden * sizeof(float)))
    return nullptr;
  const PreparedFeatures& prepared = features(smoothing);
  const uint64_t own = InferenceOrder::bytes(data_.num_nodes()), memory = memory_for_inference() + (order_ ? own : 0),
                 beside = memory_beside_inference(*saved_.model, data_) + own +
                          smoothing_memory(*saved_.model, data_, smoothing);
  if (memory < beside ||
      !Inference::takes_order(*saved_.model, {data_.graph, prepared.x, prepared.aggregated}, memory - beside)) {
    order_.reset();
    return nullptr;
  }
  if (!order_) find_order();
  return order_ ? &*order_ : nullptr;
}

void Predictor::find_order() {
  if (order_sought_) return;
  const PartitionOptions partition = saved_.options.method.partition(saved_.options.partition);
  const std::optional<ClusterLayout> layout = find_partition(store_, partition);
  order_sought_ = !layout;  // there is none: not again
  if (layout) order_.emplace(data_.graph, layout->order.span(), layout->cluster_offsets.span());
}

// What the store's mapped pages take now is given back first: they are read again, block by block.
uint64_t Predictor::memory_for_inference() const {
  store_.release_pages();
  return memory_left(memory_);
}

// What is left of it for the rows, besides what is always there and what smoothing takes.
uint64_t Predictor::inference_memory(Smoothing smoothing) const {
  const uint64_t memory = memory_for_inference(),
                 beside = memory_beside_inference(*saved_.model, data_) +
                          smoothing_memory(*saved_.model, data_, smoothing, group_.size());
  const uint64_t least = beside + Inference::least_memory(*saved_.model, data_.num_nodes());
  group_.together([&] {
    if (memory < least)
      refuse_memory_left(least, fmt::format("an exact evaluation of {} nodes", format_count(data_.num_nodes())));
  });
  return memory - beside;
}

SlabMatrix Predictor::embeddings(uint32_t layer) {
  const InferenceInput input = inference_input(Smoothing::kNone);
  const uint64_t memory = inference_memory(Smoothing::kNone);
  SlabMatrix rows = Inference(*saved_.model, input, memory, true, layer).run();
  return share_->is_alone() ? std::move(rows) : share_->collect_all(rows, memory_left(memory_) / 2);
}

SmoothingRequest Predictor::request_for(Smoothing smoothing) const {
  const TrainOptions& trained = saved_.options.train;
  return {smoothing, trained.select_by, trained.thresholds == Thresholds::kValidation};
}

Predictor::Output Predictor::output(Smoothing smoothing) {
  if (smoothing == Smoothing::kNone) return {embeddings(num_layers()), saved_.rule};
  group_.together([&] { require_smoothing(); });
  const InferenceInput input = inference_input(smoothing);
  const uint64_t memory = inference_memory(smoothing);
  Output output{Inference(*saved_.model, input, memory, true).run(), saved_.rule};
  if (!share_->is_alone()) output.logits = share_->collect_all(output.logits, memory_left(memory_) / 2);
  group_.on_first([&] {
    const SmoothingChoice choice =
        smooth_outputs(output.logits, data_, saved_.rule, request_for(smoothing), memory_for_inference());
    log::note("smoothing: {}", choice.text());
    output.smoothed = choice.chosen();
    if (output.smoothed) output.rule = choice.rule;
  });
  output.smoothed = group_.broadcast_value(output.smoothed);
  return output;
}

std::optional<SlabMatrix> Predictor::embeddings_of(std::span<const NodeId> nodes, uint32_t layer) {
  std::optional<SlabMatrix> rows;
  group_.on_first([&] { rows = neighbourhood_of(nodes, layer); });
  if (!group_.is_first()) rows.emplace();
  if (!group_.broadcast_value(rows.has_value())) rows.reset();
  return rows;
}

std::optional<SlabMatrix> Predictor::neighbourhood_of(std::span<const NodeId> nodes, uint32_t layer) const {
  const Normalisation first = saved_.options.first_normalisation();
  std::optional<FeatureMatrix> aggregated;
  if (saved_.scaling.empty() && saved_.scaling.columns.empty() && !saved_.scaling.rows)
    aggregated = kept_aggregated_features(store_, first);
  NeighbourhoodInference inference(*saved_.model, data_, first, saved_.scaling, std::move(aggregated));
  if (!inference.possible() || !inference.plan(nodes, layer, memory_for_inference())) return std::nullopt;
  return inference.run();
}

double Predictor::Output::temperature() const {
  if (smoothed) return 1;
  if (!rule.temperature)
    throw Error("the model has no temperature: it was trained without validation nodes, or its test was not finished",
                "--calibrated", "leave it out, or train with validation nodes");
  return *rule.temperature;
}

void to_probabilities(std::span<float> logits, bool multi_label, double temperature) {
  if (temperature != 1)
    for (float& z : logits) z = static_cast<float>(z / temperature);
  if (multi_label) {
    for (float& z : logits) z = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(z))));
    return;
  }
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float& z : logits) sum += z = std::exp(z - largest);
  for (float& z : logits) z = static_cast<float>(z / sum);
}

}  // namespace cgcn
