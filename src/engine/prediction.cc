#include "engine/prediction.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "common/error.h"
#include "common/log.h"
#include "graph/npy.h"

namespace cgcn {
namespace {

// RFC 4180: quoted if it has to be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

constexpr size_t kRowsMapped = size_t{1} << 16;  // nodes whose ids are read before their pages are given back

struct ListedId {
  std::string_view id;
  size_t line;
};

// One per line; empty lines are none.
std::vector<ListedId> split_ids(std::string_view text) {
  std::vector<ListedId> ids;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view id = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (id.ends_with('\r')) id.remove_suffix(1);
    if (!id.empty()) ids.push_back({id, line});
  }
  return ids;
}

constexpr NodeId kNoNode = UINT32_MAX;

// Of ids that are 0 … n-1, written as the graph writes them: 07 is no node.
NodeId node_of_number(std::string_view id, NodeId num_nodes) {
  NodeId v = 0;
  const auto [end, problem] = std::from_chars(id.data(), id.data() + id.size(), v);
  const bool whole = problem == std::errc() && end == id.data() + id.size() && (id[0] != '0' || id.size() == 1);
  return whole && v < num_nodes ? v : kNoNode;
}

// The nodes of these ids; kNoNode if there is none. A graph may have many more nodes than are listed: only the listed
// ids are in the table.
std::vector<NodeId> find_nodes(const std::vector<ListedId>& ids, const Predictor& predictor) {
  const Dataset& data = predictor.data();
  std::vector<NodeId> nodes(ids.size(), kNoNode);
  if (data.ids.kind() == NodeIds::Kind::kRange) {
    for (size_t i = 0; i < ids.size(); ++i) nodes[i] = node_of_number(ids[i].id, data.num_nodes());
    return nodes;
  }
  std::unordered_map<std::string_view, NodeId> known;
  known.reserve(ids.size());
  for (const ListedId& listed : ids) known.emplace(listed.id, kNoNode);
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (v % kRowsMapped == 0) predictor.release_pages();
    if (const auto found = known.find(data.ids.text(v)); found != known.end() && found->second == kNoNode)
      found->second = v;
  }
  for (size_t i = 0; i < ids.size(); ++i) nodes[i] = known.at(ids[i].id);
  return nodes;
}

// The nodes that a file lists by the user's ids, one per line, in its order.
std::vector<NodeId> read_nodes(const fs::path& path, const Predictor& predictor) {
  constexpr uint64_t kBytesPerLine = sizeof(ListedId) + sizeof(NodeId) + 64;  // 64: of the table of ids
  const std::string what = fmt::format("the nodes that {} lists", path.string());
  std::error_code problem;
  if (const uint64_t size = fs::file_size(path, problem); !problem) predictor.require_room_for(size, what);
  const std::string text = read_text_file(path);
  predictor.require_room_for(kBytesPerLine * (1 + static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'))),
                             what);
  const bool marked = text.starts_with("\xEF\xBB\xBF");  // a byte order mark
  const std::vector<ListedId> ids = split_ids(std::string_view(text).substr(marked ? 3 : 0));
  if (ids.empty()) throw Error("lists no nodes", path.string());
  std::vector<NodeId> nodes = find_nodes(ids, predictor);
  if (const auto absent = std::find(nodes.begin(), nodes.end(), kNoNode); absent != nodes.end()) {
    const auto& [id, line] = ids[static_cast<size_t>(absent - nodes.begin())];
    throw Error(fmt::format("the graph has no node '{}'", id), fmt::format("{}:{}", path.string(), line),
                "one id per line, without a header line");
  }
  return nodes;
}

bool is_npy(const fs::path& output) { return output.extension() == ".npy"; }

bool has_label(const Labels& labels, NodeId v) {
  if (!labels.multi_label()) return labels.known(v);
  const std::span<const uint8_t> bits = labels.bit_row(v);
  return std::any_of(bits.begin(), bits.end(), [](uint8_t byte) { return byte != 0; });
}

// Empty: all.
std::vector<NodeId> choose_nodes(const PredictionRequest& request, const Predictor& predictor) {
  const Dataset& data = predictor.data();
  std::vector<NodeId> chosen = request.nodes.empty() ? std::vector<NodeId>() : read_nodes(request.nodes, predictor);
  if (!request.unlabelled || !data.labels.present()) return chosen;
  if (request.nodes.empty())
    for (NodeId v = 0; v < data.num_nodes(); ++v) chosen.push_back(v);
  std::erase_if(chosen, [&](NodeId v) { return has_label(data.labels, v); });
  if (chosen.empty())
    throw Error(request.nodes.empty() ? "every node has a label"
                                      : fmt::format("every node that {} lists has a label", request.nodes),
                "--unlabelled", "leave it out");
  return chosen;
}

uint32_t choose_layer(const PredictionRequest& request, uint32_t layers) {
  if (request.layer > layers) throw Error(fmt::format("the model has {} layers", layers), "--layer");
  if (request.kind != PredictionKind::kEmbeddings) return layers;
  return request.layer > 0 ? request.layer : std::max(1u, layers - 1);
}

bool writes_probabilities(PredictionKind kind) {
  return kind == PredictionKind::kProbabilities || kind == PredictionKind::kClassAndProbability;
}

bool is_far_from_calibrated(const OutputRule& rule) {
  constexpr double kFar = 1.5;
  return rule.temperature && (*rule.temperature > kFar || *rule.temperature < 1 / kFar);
}

}  // namespace

void PredictionRequest::list_options(OptionList& list) {
  list.begin_group("Prediction");
  list.add_choice(
      "what", &kind,
      {{"classes", PredictionKind::kClasses},
       {"class+probability", PredictionKind::kClassAndProbability},
       {"probabilities", PredictionKind::kProbabilities},
       {"embeddings", PredictionKind::kEmbeddings}},
      "classes (of regression: values), classes with their probability, the probability of every class, or the "
      "embeddings of a layer");
  list.add("layer", &layer, "with --what embeddings: layer, from 1; 0: the last hidden layer").range(0, 64);
  list.add("nodes", &nodes, "only the nodes whose ids this file lists, one per line, in its order").value("FILE");
  list.add("unlabelled", &unlabelled, "only the nodes without a label");
  list.add("calibrated", &calibrated,
           "probabilities scaled by the temperature that fits the validation nodes best; smoothed ones always are")
      .needs([this] { return writes_probabilities(kind); }, "no probabilities are written (--what)");
  smoothing.list_options(list);
  list.find("smooth")->needs([this] { return kind != PredictionKind::kEmbeddings; },
                             "embeddings are written as they are");
}

Prediction::Prediction(Predictor& predictor, const PredictionRequest& request)
    : kind_(request.kind),
      predictor_(predictor),
      multi_label_(predictor.saved().shape.multi_label),
      regression_(predictor.saved().shape.regression) {
  if (regression_ && (kind_ == PredictionKind::kProbabilities || kind_ == PredictionKind::kClassAndProbability))
    throw Error("the model predicts numbers, which have no probabilities", "--what", "leave it out: id,value");
  if (regression_ && request.calibrated)
    throw Error("the model predicts numbers, which have no probabilities", "--calibrated", "leave it out");
  const uint32_t layer = choose_layer(request, predictor.num_layers());
  nodes_ = choose_nodes(request, predictor);
  // Embeddings are the model's.
  const Smoothing smoothing =
      kind_ == PredictionKind::kEmbeddings ? Smoothing::kNone : predictor.smoothing(request.smoothing.kind);
  Predictor::Output output{{}, predictor.saved().rule};
  if (request.calibrated && smoothing == Smoothing::kNone)
    temperature_ = output.temperature();  // refused before the work
  std::optional<SlabMatrix> packed;
  if (!nodes_.empty() && smoothing == Smoothing::kNone) packed = predictor.embeddings_of(nodes_, layer);
  packed_ = packed.has_value();
  if (packed)
    output.logits = *std::move(packed);
  else if (kind_ == PredictionKind::kEmbeddings)
    output.logits = predictor.embeddings(layer);
  else
    output = predictor.output(smoothing);
  if (request.calibrated) temperature_ = output.temperature();
  if (request.calibrated && output.smoothed)
    log::note("--calibrated: smoothed probabilities are calibrated as they are");
  if (!request.calibrated && writes_probabilities(kind_) && !output.smoothed && is_far_from_calibrated(output.rule))
    log::note("the model's own probabilities are {}: --calibrated gives what the validation nodes suggest",
              *output.rule.temperature > 1 ? "too sure" : "not sure enough");
  values_ = std::move(output.logits);
  rule_ = std::move(output.rule);
}

template <class Use>
void Prediction::for_each_row(Use&& use) const {
  constexpr size_t kRows = 4096;
  const bool in_order = nodes_.empty() || packed_;
  std::vector<float> scratch((in_order ? kRows : 1) * values_.columns()), row(values_.columns());
  for (size_t i = 0, released = 0; i < nodes();) {
    if (i >= released + kRowsMapped) {  // ids, which are in no plan
      predictor_.release_pages();
      released = i;
    }
    const size_t first = in_order ? i : nodes_[i], last = in_order ? std::min(nodes(), i + kRows) : first + 1;
    const kernels::ConstMatrix rows = values_.read_rows({first, last}, scratch.data());
    for (size_t r = 0; r < rows.rows; ++r) {
      std::copy_n(rows.row(r), values_.columns(), row.begin());
      use(nodes_.empty() ? static_cast<NodeId>(i + r) : nodes_[i + r], std::span<float>(row));
    }
    i += rows.rows;
  }
}

void Prediction::write_csv(const Write& write) const {
  write(csv_header());
  for_each_row([&](NodeId v, std::span<float> row) { write(csv_row(v, row)); });
}

void Prediction::write_npy(const Write& write) const {
  write(npy_header());
  for_each_row([&](NodeId, std::span<float> row) { write(npy_row(row)); });
}

uint32_t Prediction::columns(bool npy) const {
  if (kind_ == PredictionKind::kClassAndProbability) return 2;
  return kind_ == PredictionKind::kClasses && !(npy && multi_label_) ? 1 : static_cast<uint32_t>(values_.columns());
}

std::string Prediction::csv_header() const {
  if (kind_ == PredictionKind::kClasses && regression_) return "id,value\n";
  if (kind_ == PredictionKind::kClasses) return multi_label_ ? "id,classes\n" : "id,class\n";
  if (kind_ == PredictionKind::kClassAndProbability)
    return multi_label_ ? "id,classes,probabilities\n" : "id,class,probability\n";
  std::string header = "id";
  for (uint32_t c = 0; c < values_.columns(); ++c)
    header += "," + (kind_ == PredictionKind::kProbabilities ? csv_field(predictor_.class_name(c)) : std::to_string(c));
  return header + "\n";
}

std::string Prediction::csv_row(NodeId v, std::span<float> row) const {
  std::string text = csv_field(predictor_.data().ids.text(v));
  if (kind_ == PredictionKind::kProbabilities || kind_ == PredictionKind::kEmbeddings) {
    if (kind_ == PredictionKind::kProbabilities) to_probabilities(row, multi_label_, temperature_);
    for (const float x : row) text += fmt::format(",{}", x);
    return text + "\n";
  }
  if (regression_) return text + fmt::format(",{}\n", value_of(row[0]));
  const std::vector<uint32_t> classes = classes_of(row);
  std::string names, probabilities;
  if (kind_ == PredictionKind::kClassAndProbability) to_probabilities(row, multi_label_, temperature_);
  for (const uint32_t c : classes) {
    const char* separator = names.empty() ? "" : ";";
    names += separator + predictor_.class_name(c);
    probabilities += fmt::format("{}{}", separator, row[c]);
  }
  text += "," + csv_field(names);
  return text + (kind_ == PredictionKind::kClassAndProbability ? "," + probabilities : "") + "\n";
}

std::string Prediction::npy_header() const {
  const uint64_t rows = nodes(), columns = values_.columns();
  if (kind_ != PredictionKind::kClasses) return make_npy_header("<f4", std::vector<uint64_t>{rows, columns});
  if (regression_) return make_npy_header("<f4", std::vector<uint64_t>{rows});
  if (multi_label_) return make_npy_header("|u1", std::vector<uint64_t>{rows, columns});
  return make_npy_header("<i4", std::vector<uint64_t>{rows});
}

std::string Prediction::npy_row(std::span<float> row) const {
  if (kind_ == PredictionKind::kClasses && multi_label_) {
    std::string bits;
    for (uint32_t c = 0; c < row.size(); ++c) bits += static_cast<char>(row[c] > rule_.threshold(c));
    return bits;
  }
  if (kind_ == PredictionKind::kClasses && regression_) {
    const float value = value_of(row[0]);
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  if (kind_ == PredictionKind::kClasses) {
    const int32_t label = predictor_.class_number(largest_class(row));
    return {reinterpret_cast<const char*>(&label), sizeof label};
  }
  if (kind_ == PredictionKind::kProbabilities) to_probabilities(row, multi_label_, temperature_);
  return {reinterpret_cast<const char*>(row.data()), row.size_bytes()};
}

// The one with the largest logit; or all whose logit is above the class's threshold, 0 unless the model has its own.
std::vector<uint32_t> Prediction::classes_of(std::span<const float> logits) const {
  if (!multi_label_) return {largest_class(logits)};
  std::vector<uint32_t> classes;
  for (uint32_t c = 0; c < logits.size(); ++c)
    if (logits[c] > rule_.threshold(c)) classes.push_back(c);
  return classes;
}

// Neither a file of a graph store nor what is read here is replaced.
void require_writable(const PredictionRequest& request, const fs::path& output) {
  if (request.layer > 0 && request.kind != PredictionKind::kEmbeddings)
    throw Error("needs --what embeddings", "--layer");
  if (output.empty()) return;
  if (!is_npy(output) && output.extension() != ".csv")
    throw Error(fmt::format("'{}' ends neither in .npy nor in .csv", output.string()), "--output");
  if (request.kind == PredictionKind::kClassAndProbability && is_npy(output))
    throw Error("classes with their probabilities cannot be one array", "--output", "a .csv file");
  std::error_code ignored;
  if (fs::exists(output.parent_path() / "meta.json", ignored))
    throw Error("lies in a graph store", output.string(), "--output in another folder");
  if (fs::equivalent(output, request.nodes, ignored))
    throw Error("is the file that --nodes reads", output.string(), "--output with another name");
}

void write_prediction(const Prediction& prediction, const fs::path& output) {
  OutputFile file = OutputFile::staged(output);
  const auto write = [&](const std::string& text) { file.write(text); };
  if (is_npy(output))
    prediction.write_npy(write);
  else
    prediction.write_csv(write);
  file.commit();
}

}  // namespace cgcn
