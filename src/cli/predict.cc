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

enum class What { kClasses, kProbabilities, kEmbeddings };

struct PredictCommand {
  CommonOptions common;
  MemoryOptions memory;
  What what = What::kClasses;
  uint32_t layer = 0;
  std::string run, store, nodes, output;
  OptionList list;

  void list_options();
  void run_command();
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
    std::string header = "id";
    for (uint32_t c = 0; c < columns_; ++c)
      header += "," + (what_ == What::kProbabilities ? csv_field(predictor_.class_name(c)) : std::to_string(c));
    return header + "\n";
  }
  uint32_t values_a_node(bool npy) const { return what_ == What::kClasses && !(npy && multi_) ? 1 : columns_; }
  std::string csv_row(NodeId v, std::span<float> row) const {
    std::string text = csv_field(predictor_.data().ids.text(v));
    if (what_ != What::kClasses) {
      if (what_ == What::kProbabilities) to_probabilities(row, multi_);
      for (const float x : row) text += fmt::format(",{}", x);
    } else if (!multi_) {
      text += "," + csv_field(predictor_.class_name(largest_class(row)));
    } else {
      std::string names;
      for (uint32_t c = 0; c < columns_; ++c)
        if (row[c] > 0) names += (names.empty() ? "" : ";") + predictor_.class_name(c);
      text += "," + csv_field(names);
    }
    return text + "\n";
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
  What what_;
  const Predictor& predictor_;
  uint32_t columns_;
  bool multi_;
};

// Calls use(node, row) for the nodes in their order; all of them where the list is empty.
template <class Use>
void for_each_row(const SlabMatrix& values, const std::vector<NodeId>& nodes, Use&& use) {
  constexpr size_t kRows = 4096;
  const size_t count = nodes.empty() ? values.rows() : nodes.size();
  std::vector<float> scratch((nodes.empty() ? kRows : 1) * values.columns()), row(values.columns());
  const auto hand_over = [&](NodeId v, const float* from) {
    std::copy_n(from, values.columns(), row.begin());
    use(v, std::span<float>(row));
  };
  for (size_t i = 0; i < count; i += nodes.empty() ? kRows : 1) {
    if (!nodes.empty()) {
      hand_over(nodes[i], values.read_rows({nodes[i], nodes[i] + size_t{1}}, scratch.data()).data);
      continue;
    }
    const kernels::ConstMatrix rows = values.read_rows({i, std::min(count, i + kRows)}, scratch.data());
    for (size_t r = 0; r < rows.rows; ++r) hand_over(static_cast<NodeId>(i + r), rows.row(r));
  }
}

void PredictCommand::list_options() {
  list.begin_group("Prediction");
  list.add_choice(
      "what", &what,
      {{"classes", What::kClasses}, {"probabilities", What::kProbabilities}, {"embeddings", What::kEmbeddings}},
      "a class for each node, the probability of every class, or a layer's output");
  list.add("layer", &layer, "with --what embeddings: which layer, from 1; 0: the last hidden one").range(0, 64);
  list.add("nodes", &nodes, "only the nodes whose ids this file lists, one a line, in its order").value("FILE");
  list.add("output", &output, "where to write: .npy or .csv; CSV to the terminal where not given").value("FILE");
  memory.list_options(list);
  common.list_options(list);
}

void PredictCommand::run_command() {
  apply_common_options(common);
  const std::string suffix = fs::path(output).extension().string();
  if (!output.empty() && suffix != ".npy" && suffix != ".csv")
    throw Error(fmt::format("'{}' ends neither in .npy nor in .csv", output), "--output");
  if (!output.empty()) require_replaceable_output(output, nodes);
  if (common.json && output.empty())
    throw Error("tells of a written file, and there is none", "--json", "--output FILE");
  if (layer > 0 && what != What::kEmbeddings) throw Error("goes with --what embeddings only", "--layer");
  Predictor predictor(run, store, memory);
  const uint32_t layers = predictor.num_layers();
  if (layer > layers) throw Error(fmt::format("the model has {} layers", layers), "--layer");
  const std::vector<NodeId> chosen = nodes.empty() ? std::vector<NodeId>() : read_nodes(nodes, predictor.data());
  const uint32_t wanted = what != What::kEmbeddings ? layers : layer > 0 ? layer : std::max(1u, layers - 1);
  const SlabMatrix values = predictor.embeddings(wanted);
  const RowWriter rows(what, predictor, static_cast<uint32_t>(values.columns()));
  if (output.empty()) {
    print_or_stop(rows.csv_header());
    for_each_row(values, chosen, [&](NodeId v, std::span<float> row) { print_or_stop(rows.csv_row(v, row)); });
    return;
  }
  OutputFile file = OutputFile::staged(output);
  const uint64_t count = chosen.empty() ? values.rows() : chosen.size();
  file.write(suffix == ".npy" ? rows.npy_header(count) : rows.csv_header());
  for_each_row(values, chosen, [&](NodeId v, std::span<float> row) {
    file.write(suffix == ".npy" ? rows.npy_row(row) : rows.csv_row(v, row));
  });
  file.commit();
  if (common.json)
    fmt::print("{}\n",
               to_text({{"output", output}, {"nodes", count}, {"columns", rows.values_a_node(suffix == ".npy")}}));
  else
    log::note("{}: {} nodes", output, format_count(count));
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
