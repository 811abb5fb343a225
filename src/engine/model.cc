// A trained model: the bytes of its checkpoint, and what can be computed with it.
#include "common/file.h"
#include "engine/content.h"
#include "engine/train.h"
#include "train/checkpoint.h"
#include "train/predictor.h"
#include "train/seed_runs.h"

namespace clustergcn {
namespace {

constexpr const char* kFile = "model.safetensors";

cgcn::SavedModel load(const Model::Content& content) { return cgcn::load_model(content.file); }

Model keep(const std::string& bytes) {
  auto content = std::make_shared<Model::Content>();
  content->folder = std::make_shared<cgcn::MemoryFolder>(bytes.size());
  content->file = content->folder->path() / kFile;
  cgcn::write_file_atomically(content->file, bytes);
  load(*content);  // what is damaged is refused now
  return Model(std::move(content));
}

std::string read_file(const cgcn::fs::path& file) { return cgcn::read_text_file(file, SIZE_MAX); }

Matrix to_matrix(const cgcn::SlabMatrix& rows, std::span<const uint32_t> nodes) {
  Matrix out{nodes.empty() ? rows.rows() : nodes.size(), rows.columns(), {}};
  out.values.resize(out.rows * out.columns);
  std::vector<float> scratch(rows.columns());
  for (uint64_t i = 0; i < out.rows; ++i) {
    const size_t row = nodes.empty() ? i : nodes[i];
    const auto values = rows.read_rows({row, row + 1}, scratch.data());
    std::copy_n(values.row(0), out.columns, out.values.data() + i * out.columns);
  }
  return out;
}

void require_nodes(std::span<const uint32_t> nodes, uint64_t num_nodes) {
  for (const uint32_t v : nodes)
    if (v >= num_nodes)
      throw cgcn::Error(fmt::format("node {} is asked for, and the graph has {}", v, num_nodes), "nodes");
}

cgcn::Smoothing asked_smoothing(const OutputOptions& output) {
  cgcn::SmoothingOptions smoothing;
  cgcn::OptionList list;
  smoothing.list_options(list);
  list.find("smooth")->set(output.smooth, "--smooth");
  return smoothing.kind;
}

Matrix infer_embeddings(const Model::Content& content, const Graph& graph, uint32_t layer,
                        std::span<const uint32_t> nodes) {
  require_nodes(nodes, graph.num_nodes());
  cgcn::Predictor predictor(content.file, graph.content().store, {}, content.precision);
  const uint32_t layers = predictor.num_layers();
  if (layer > layers) throw cgcn::Error(fmt::format("the model has {} layers", layers), "layer");
  const uint32_t wanted = layer > 0 ? layer : std::max(1u, layers - 1);
  std::optional<cgcn::SlabMatrix> packed;
  if (!nodes.empty()) packed = predictor.embeddings_of(nodes, wanted);
  return packed ? to_matrix(*packed, {}) : to_matrix(predictor.embeddings(wanted), nodes);
}

// Logits of the nodes that are asked for, and what classes and probabilities are made by.
struct Logits {
  Matrix rows;
  cgcn::OutputRule rule;
  bool multi_label;
  double temperature = 1;
};

Logits infer_logits(const Model::Content& content, const Graph& graph, std::span<const uint32_t> nodes,
                    const OutputOptions& asked) {
  require_nodes(nodes, graph.num_nodes());
  cgcn::Predictor predictor(content.file, graph.content().store, {}, content.precision);
  const cgcn::ModelShape& shape = predictor.saved().shape;
  if (shape.regression) throw cgcn::Error("the model predicts numbers, not classes", "model", "values");
  const cgcn::Smoothing smoothing = predictor.smoothing(asked_smoothing(asked));
  cgcn::Predictor::Output output{{}, predictor.saved().rule};
  std::optional<cgcn::SlabMatrix> packed;
  if (!nodes.empty() && smoothing == cgcn::Smoothing::kNone)
    packed = predictor.embeddings_of(nodes, predictor.num_layers());
  if (!packed) output = predictor.output(smoothing);
  return {.rows = packed ? to_matrix(*packed, {}) : to_matrix(output.logits, nodes),
          .rule = output.rule,
          .multi_label = shape.multi_label,
          .temperature = asked.calibrated ? output.temperature() : 1};
}

Matrix to_classes(const Logits& logits) {
  const Matrix& rows = logits.rows;
  Matrix out{rows.rows, logits.multi_label ? rows.columns : 1, {}};
  for (uint64_t r = 0; r < rows.rows; ++r) {
    const std::span<const float> row(rows.values.data() + r * rows.columns, rows.columns);
    if (!logits.multi_label) out.values.push_back(static_cast<float>(cgcn::largest_class(row)));
    for (uint32_t c = 0; logits.multi_label && c < row.size(); ++c)
      out.values.push_back(row[c] > logits.rule.threshold(c) ? 1.0f : 0.0f);
  }
  return out;
}

}  // namespace

Scores to_scores(const cgcn::Scores& scores) {
  return {scores.nodes,
          scores.micro_f1,
          scores.macro_f1,
          scores.accuracy,
          scores.loss,
          scores.calibration_error,
          scores.calibrated_error,
          scores.roc_auc,
          scores.average_precision,
          scores.regression ? std::optional(scores.regression->r2) : std::nullopt,
          scores.regression ? std::optional(scores.regression->mae) : std::nullopt,
          scores.regression ? std::optional(scores.regression->rmse) : std::nullopt};
}
Evaluation to_evaluation(const cgcn::Evaluation& evaluation) {
  return {to_scores(evaluation.train.scores()), to_scores(evaluation.validation.scores()),
          to_scores(evaluation.test.scores())};
}

Model Model::load(const std::string& path) {
  return call({}, [&] { return keep(read_file(cgcn::kept_checkpoint(cgcn::best_of_seeds(path)))); });
}
Model Model::from_bytes(const std::string& bytes) {
  return call({}, [&] { return keep(bytes); });
}
std::string Model::to_bytes() const {
  return call({}, [&] { return read_file(content_->file); });
}
void Model::save(const std::string& file) const {
  call({}, [&] { cgcn::write_file_atomically(file, read_file(content_->file)); });
}

Model Model::in_precision(const std::string& name) const {
  return call({}, [&] {
    auto content = std::make_shared<Content>(*content_);
    cgcn::OptionList list;
    content->precision.list_options(list);
    list.find("precision")->set(name, "--precision");
    return Model(std::move(content));
  });
}

Matrix Model::probabilities(const Graph& graph, std::span<const uint32_t> nodes, const Session& session,
                            const OutputOptions& output) const {
  return call(session, [&] {
    Logits logits = infer_logits(*content_, graph, nodes, output);
    Matrix& rows = logits.rows;
    for (uint64_t r = 0; r < rows.rows; ++r)
      cgcn::to_probabilities({rows.values.data() + r * rows.columns, rows.columns}, logits.multi_label,
                             logits.temperature);
    return std::move(rows);
  });
}
Matrix Model::classes(const Graph& graph, std::span<const uint32_t> nodes, const Session& session,
                      const OutputOptions& output) const {
  return call(session, [&] { return to_classes(infer_logits(*content_, graph, nodes, {false, output.smooth})); });
}
Matrix Model::values(const Graph& graph, std::span<const uint32_t> nodes, const Session& session) const {
  return call(session, [&] {
    const cgcn::SavedModel saved = clustergcn::load(*content_);
    if (!saved.shape.regression) throw cgcn::Error("the model predicts classes, not numbers", "model", "probabilities");
    Matrix out = infer_embeddings(*content_, graph, saved.model->num_layers(), nodes);
    for (float& value : out.values) value = static_cast<float>(saved.target.to_value(value));
    return out;
  });
}
Matrix Model::embeddings(const Graph& graph, uint32_t layer, std::span<const uint32_t> nodes,
                         const Session& session) const {
  return call(session, [&] { return infer_embeddings(*content_, graph, layer, nodes); });
}
Evaluation Model::evaluate(const Graph& graph, const Session& session, const OutputOptions& output) const {
  return call(session, [&] {
    cgcn::Predictor predictor(content_->file, graph.content().store, {}, content_->precision);
    return to_evaluation(predictor.evaluate({}, asked_smoothing(output)));
  });
}

uint32_t Model::num_layers() const {
  return call({}, [&] { return clustergcn::load(*content_).model->num_layers(); });
}
uint64_t Model::num_features() const {
  return call({}, [&] { return uint64_t{clustergcn::load(*content_).shape.input_columns}; });
}
uint32_t Model::num_classes() const {
  return call({}, [&] { return clustergcn::load(*content_).shape.num_classes; });
}
bool Model::multi_label() const {
  return call({}, [&] { return clustergcn::load(*content_).shape.multi_label; });
}
bool Model::regression() const {
  return call({}, [&] { return clustergcn::load(*content_).shape.regression; });
}
std::vector<float> Model::thresholds() const {
  return call({}, [&] {
    const cgcn::SavedModel saved = clustergcn::load(*content_);
    return saved.rule.thresholds.empty() ? std::vector<float>(saved.shape.num_classes, 0.0f) : saved.rule.thresholds;
  });
}
std::optional<double> Model::temperature() const {
  return call({}, [&] { return clustergcn::load(*content_).rule.temperature; });
}
std::vector<std::string> Model::class_names() const {
  return call({}, [&] { return clustergcn::load(*content_).trained_on.class_names; });
}
std::vector<std::string> Model::feature_names() const {
  return call({}, [&] { return clustergcn::load(*content_).trained_on.feature_names; });
}
Options Model::options() const {
  return call({}, [&] {
    Options options;
    cgcn::RunOptions saved = clustergcn::load(*content_).options;
    cgcn::OptionList list;
    saved.list_options(list);
    for (const cgcn::Option& option : list.all()) options.set(option.name(), option.text());
    return options;
  });
}

}  // namespace clustergcn
