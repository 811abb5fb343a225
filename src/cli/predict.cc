// clustergcn predict: classes, probabilities or embeddings, in the user's ids and order.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "cli/command.h"
#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "common/progress.h"
#include "graph/npy.h"
#include "train/predictor.h"

namespace cgcn {
namespace {

enum class What { kClasses, kClassAndProbability, kProbabilities, kEmbeddings };

struct PredictCommand {
  CommonOptions common;
  MemoryOptions memory;
  What what = What::kClasses;
  uint32_t layer = 0;
  bool unlabelled = false;
  std::string run, store, nodes, output;
  OptionList list;

  void list_options();
  void run_command();

 private:
  std::vector<NodeId> chosen_nodes(const Dataset& data) const;
};

// What was written there before is replaced, but neither a file of a graph store nor what is read here.
void require_replaceable_output(const fs::path& output, const fs::path& nodes) {
  std::error_code ignored;
  if (fs::exists(output.parent_path() / "meta.json", ignored))
    throw Error("lies in a graph store", output.string(), "--output in another folder");
  if (fs::equivalent(output, nodes, ignored))
    throw Error("is the file that --nodes reads", output.string(), "--output with another name");
}

// To stdout. A reader that has seen enough (head) ends the program without a word.
void print_or_stop(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  if (errno == EPIPE) std::_Exit(0);
  throw Error(fmt::format("cannot write: {}", std::strerror(errno)), "standard output");
}

// RFC 4180: quoted where it has to be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

// The nodes that a file lists by the user's ids, one a line, in its order.
std::vector<NodeId> read_nodes(const fs::path& path, const Dataset& data) {
  std::unordered_map<std::string, NodeId> known;
  known.reserve(data.num_nodes());
  for (NodeId v = 0; v < data.num_nodes(); ++v) known.emplace(data.ids.text(v), v);
  const std::string text = read_text_file(path);
  std::vector<NodeId> nodes;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string id = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!id.empty() && id.back() == '\r') id.pop_back();
    if (id.empty()) continue;
    const auto found = known.find(id);
    if (found == known.end())
      throw Error(fmt::format("there is no node '{}' in the graph", id), fmt::format("{}:{}", path.string(), number));
    nodes.push_back(found->second);
  }
  if (nodes.empty()) throw Error("lists no nodes", path.string());
  return nodes;
}

// What one row of the last (or the chosen) layer becomes, as CSV and as bytes of a .npy row.
class RowWriter {
 public:
  RowWriter(What what, const Predictor& predictor, uint32_t columns)
      : what_(what), predictor_(predictor), columns_(columns), multi_(predictor.saved().shape.multi_label) {}

  std::string csv_header() const {
    if (what_ == What::kClasses) return multi_ ? "id,classes\n" : "id,class\n";
    if (what_ == What::kClassAndProbability) return multi_ ? "id,classes,probabilities\n" : "id,class,probability\n";
    std::string header = "id";
    for (uint32_t c = 0; c < columns_; ++c)
      header += "," + (what_ == What::kProbabilities ? csv_field(predictor_.class_name(c)) : std::to_string(c));
    return header + "\n";
  }
  uint32_t values_per_node(bool npy) const {
    if (what_ == What::kClassAndProbability) return 2;
    return what_ == What::kClasses && !(npy && multi_) ? 1 : columns_;
  }
  std::string csv_row(NodeId v, std::span<float> row) const {
    std::string text = csv_field(predictor_.data().ids.text(v));
    if (what_ == What::kProbabilities || what_ == What::kEmbeddings) {
      if (what_ == What::kProbabilities) to_probabilities(row, multi_);
      for (const float x : row) text += fmt::format(",{}", x);
      return text + "\n";
    }
    const std::vector<uint32_t> classes = classes_of(row);
    std::string names, probabilities;
    if (what_ == What::kClassAndProbability) to_probabilities(row, multi_);
    for (const uint32_t c : classes) {
      const char* separator = names.empty() ? "" : ";";
      names += separator + predictor_.class_name(c);
      probabilities += fmt::format("{}{}", separator, row[c]);
    }
    text += "," + csv_field(names);
    return text + (what_ == What::kClassAndProbability ? "," + probabilities : "") + "\n";
  }

  std::string npy_header(uint64_t rows) const {
    if (what_ != What::kClasses) return make_npy_header("<f4", std::vector<uint64_t>{rows, columns_});
    if (multi_) return make_npy_header("|u1", std::vector<uint64_t>{rows, columns_});
    return make_npy_header("<i4", std::vector<uint64_t>{rows});
  }
  std::string npy_row(std::span<float> row) const {
    if (what_ == What::kClasses && multi_) {
      std::string bits;
      for (const float z : row) bits += static_cast<char>(z > 0);
      return bits;
    }
    if (what_ == What::kClasses) {
      const auto label = static_cast<int32_t>(largest_class(row));
      return {reinterpret_cast<const char*>(&label), sizeof label};
    }
    if (what_ == What::kProbabilities) to_probabilities(row, multi_);
    return {reinterpret_cast<const char*>(row.data()), row.size_bytes()};
  }

 private:
  // The one with the largest logit; or all whose logit is above 0.
  std::vector<uint32_t> classes_of(std::span<const float> logits) const {
    if (!multi_) return {largest_class(logits)};
    std::vector<uint32_t> classes;
    for (uint32_t c = 0; c < columns_; ++c)
      if (logits[c] > 0) classes.push_back(c);
    return classes;
  }

  What what_;
  const Predictor& predictor_;
  uint32_t columns_;
  bool multi_;
};

// Rows to be written: of all nodes, of which some are wanted, or of the wanted ones alone.
struct Rows {
  SlabMatrix values;
  std::vector<NodeId> nodes;  // in their order; empty: all
  bool packed = false;        // row i is that of nodes[i]

  size_t count() const { return nodes.empty() ? values.rows() : nodes.size(); }
};

template <class Use>
void for_each_row(const Rows& rows, Use&& use) {
  constexpr size_t kRows = 4096;
  const SlabMatrix& values = rows.values;
  const bool in_order = rows.nodes.empty() || rows.packed;
  std::vector<float> scratch((in_order ? kRows : 1) * values.columns()), row(values.columns());
  for (size_t i = 0; i < rows.count();) {
    const size_t first = in_order ? i : rows.nodes[i], last = in_order ? std::min(rows.count(), i + kRows) : first + 1;
    const kernels::ConstMatrix part = values.read_rows({first, last}, scratch.data());
    for (size_t r = 0; r < part.rows; ++r, ++i) {
      std::copy_n(part.row(r), values.columns(), row.begin());
      use(rows.nodes.empty() ? static_cast<NodeId>(i) : rows.nodes[i], std::span<float>(row));
    }
  }
}

void PredictCommand::list_options() {
  list.begin_group("Prediction");
  list.add_choice("what", &what,
                  {{"classes", What::kClasses},
                   {"class+probability", What::kClassAndProbability},
                   {"probabilities", What::kProbabilities},
                   {"embeddings", What::kEmbeddings}},
                  "a class for each node, with its probability, the probability of every class, or a layer's output");
  list.add("layer", &layer, "with --what embeddings: which layer, from 1; 0: the last hidden one").range(0, 64);
  list.add("nodes", &nodes, "only the nodes whose ids this file lists, one per line, in its order").value("FILE");
  list.add("unlabelled", &unlabelled, "only the nodes without a label");
  list.add("output", &output, "where to write: .npy or .csv; default: CSV to the terminal").value("FILE");
  memory.list_options(list);
  common.list_options(list);
}

// Empty: all.
std::vector<NodeId> PredictCommand::chosen_nodes(const Dataset& data) const {
  std::vector<NodeId> chosen = nodes.empty() ? std::vector<NodeId>() : read_nodes(nodes, data);
  if (!unlabelled || !data.labels.present()) return chosen;
  if (nodes.empty())
    for (NodeId v = 0; v < data.num_nodes(); ++v) chosen.push_back(v);
  std::erase_if(chosen, [&](NodeId v) {
    if (!data.labels.multi_label()) return data.labels.class_of(v) >= 0;
    const std::span<const uint8_t> bits = data.labels.bit_row(v);
    return std::any_of(bits.begin(), bits.end(), [](uint8_t byte) { return byte != 0; });
  });
  if (chosen.empty())
    throw Error(nodes.empty() ? "every node has a label" : fmt::format("every node that {} lists has a label", nodes),
                "--unlabelled", "leave it out");
  return chosen;
}

void PredictCommand::run_command() {
  apply_common_options(common);
  const std::string suffix = fs::path(output).extension().string();
  if (!output.empty() && suffix != ".npy" && suffix != ".csv")
    throw Error(fmt::format("'{}' ends neither in .npy nor in .csv", output), "--output");
  if (!output.empty()) require_replaceable_output(output, nodes);
  if (common.json && output.empty())
    throw Error("tells of a written file, and there is none", "--json", "--output FILE");
  if (what == What::kClassAndProbability && suffix == ".npy")
    throw Error("a class and its probability do not fit into one array", "--output", "a .csv file");
  if (layer > 0 && what != What::kEmbeddings) throw Error("goes with --what embeddings only", "--layer");
  Predictor predictor(run, store, memory);
  const uint32_t layers = predictor.num_layers();
  if (layer > layers) throw Error(fmt::format("the model has {} layers", layers), "--layer");
  Rows rows;
  rows.nodes = chosen_nodes(predictor.data());
  const uint32_t wanted = what != What::kEmbeddings ? layers : layer > 0 ? layer : std::max(1u, layers - 1);
  std::optional<SlabMatrix> packed;
  if (!rows.nodes.empty()) packed = predictor.embeddings_of(rows.nodes, wanted);
  rows.packed = packed.has_value();
  rows.values = packed ? *std::move(packed) : predictor.embeddings(wanted);
  const RowWriter writer(what, predictor, static_cast<uint32_t>(rows.values.columns()));
  if (output.empty()) {
    print_or_stop(writer.csv_header());
    for_each_row(rows, [&](NodeId v, std::span<float> row) { print_or_stop(writer.csv_row(v, row)); });
    return;
  }
  const bool npy = suffix == ".npy";
  OutputFile file = OutputFile::staged(output);
  file.write(npy ? writer.npy_header(rows.count()) : writer.csv_header());
  for_each_row(rows,
               [&](NodeId v, std::span<float> row) { file.write(npy ? writer.npy_row(row) : writer.csv_row(v, row)); });
  file.commit();
  if (common.json)
    fmt::print("{}\n",
               to_text({{"output", output}, {"nodes", rows.count()}, {"columns", writer.values_per_node(npy)}}));
  else
    log::note("{}: {} nodes", output, format_count(rows.count()));
}

}  // namespace

void add_predict_command(CLI::App& program) {
  auto state = std::make_shared<PredictCommand>();
  CLI::App* command = program.add_subcommand("predict", "Classes, probabilities or embeddings from a trained model");
  command->add_option("run", state->run, "the run directory, or a checkpoint in it")->required();
  command->add_option("store", state->store, "the graph store; the one it was trained on where not given");
  state->list_options();
  bind_options(*command, state->list);
  command->callback([state] { state->run_command(); });
}

}  // namespace cgcn
