// clustergcn: trains deep graph convolutional networks on large graphs, by the Cluster-GCN algorithm.
//
//   clustergcn::Graph graph = clustergcn::Graph::open("my-graph");     // or Graph::from_arrays(…)
//   clustergcn::Options options;
//   options.set("hidden", "256").set("epochs", "50");
//   clustergcn::Model model = clustergcn::train(graph, options);
//   clustergcn::Matrix probabilities = model.probabilities(graph);
//
// Values go in and come out; nothing is printed, no signal handler is installed. What goes wrong is thrown as Error.
// Several calls may run at once on threads of the caller. docs/library.md explains it by an example.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#define CLUSTERGCN_API __attribute__((visibility("default")))

namespace clustergcn {

CLUSTERGCN_API const char* version();

// problem(): what is wrong; where(): a file, or an option as "--hidden"; hint(): what to try. The last two may be
// empty.
class CLUSTERGCN_API Error : public std::runtime_error {
 public:
  Error(const std::string& what, std::string problem, std::string where = {}, std::string hint = {});
  ~Error() override;
  const std::string& problem() const { return problem_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string problem_, where_, hint_;
};

// Thrown if Session::wants_stop asked for it. A training with a run folder is saved and can be resumed.
class CLUSTERGCN_API Stopped : public Error {
 public:
  using Error::Error;
  ~Stopped() override;
};

// How a long call talks to its program. Everything may be left empty.
struct Epoch;
struct Session {
  std::function<bool(const Epoch&)> on_epoch;   // after each epoch; false: stop here and keep the best model so far
  std::function<void(const std::string&)> log;  // lines for people
  std::function<bool()> wants_stop;             // polled about fifty times per second, on the calling thread
  uint32_t threads = 0;                         // 0: all cores that the process may use
  std::string run;                              // train: a folder to keep the run in; empty: nothing is written
  bool resume = false;                          // train: continue with that run
};

// An array of the caller's. With an owner, it is kept as long as a graph uses it; without, the caller keeps it.
enum class Type { kNone, kBool, kInt8, kUint8, kInt16, kInt32, kUint32, kInt64, kUint64, kFloat16, kFloat32, kFloat64 };
struct Array {
  const void* data = nullptr;
  Type type = Type::kNone;
  uint64_t rows = 0, columns = 0;  // columns 0: one dimension
  std::shared_ptr<const void> owner;

  bool empty() const { return type == Type::kNone; }
};
template <class T>
struct TypeOf;
template <>
struct TypeOf<uint8_t> {
  static constexpr Type value = Type::kUint8;
};
template <>
struct TypeOf<int32_t> {
  static constexpr Type value = Type::kInt32;
};
template <>
struct TypeOf<uint32_t> {
  static constexpr Type value = Type::kUint32;
};
template <>
struct TypeOf<int64_t> {
  static constexpr Type value = Type::kInt64;
};
template <>
struct TypeOf<uint64_t> {
  static constexpr Type value = Type::kUint64;
};
template <>
struct TypeOf<float> {
  static constexpr Type value = Type::kFloat32;
};
template <>
struct TypeOf<double> {
  static constexpr Type value = Type::kFloat64;
};
// Looks at values that the caller keeps. columns: of a matrix in row-major order; 0: one dimension.
template <class T>
Array view(std::span<const T> values, uint64_t columns = 0) {
  return {values.data(), TypeOf<T>::value, columns > 0 ? values.size() / columns : values.size(), columns, nullptr};
}
template <class T>
Array view(const std::vector<T>& values, uint64_t columns = 0) {
  return view(std::span<const T>(values), columns);
}

// A graph as arrays. Compressed rows (CSR) whose rows are sorted, without duplicates or loops and symmetric (or
// directed), with int64 offsets and int32 targets, and float32 or float16 features, are used in place; all else
// is converted once.
struct GraphArrays {
  std::string name = "graph";
  uint64_t nodes = 0;
  // Row v lists what v is linked to: targets[offsets[v] … offsets[v + 1]).
  Array offsets, targets;
  // Or edges in any order.
  Array from, to;
  Array weights;  // of targets or edges; empty: every edge counts 1
  bool directed = false, keep_self_loops = false;

  Array features;  // nodes × F; empty, and no sparse ones: the graph has none
  // Or sparse rows, feature_width columns in all.
  Array feature_offsets, feature_columns, feature_values;
  uint64_t feature_width = 0;

  bool regression = false;        // labels are numbers to predict, one per node, NaN: none
  Array labels;                   // a class number each, negative: none; or nodes × classes of 0 and 1
  Array split;                    // 0 training, 1 validation, 2 test, 255 or negative: none
  Array train, validation, test;  // or masks (nodes of bool), or lists of node numbers
  std::string split_shares;       // or shares such as "60/20/20", drawn with split_seed from the labelled nodes
  uint64_t split_seed = 1;
  std::vector<std::string> class_names, feature_names;
};

class CLUSTERGCN_API Graph {
 public:
  static Graph open(const std::string& store);
  static Graph from_arrays(const GraphArrays& arrays, const Session& session = {});
  // As the commands import, generate do; options by their names: {{"split", "60/20/20"}}.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  static Graph import(const std::string& source, const std::string& store, const Settings& options = {},
                      const Session& session = {});
  static Graph generate(const std::string& store, const Settings& options = {}, const Session& session = {});
  void save(const std::string& store, bool replace = false) const;
  // As the command partition does; training does it if it has not been done. Options by their names:
  // {{"parts", "50"}}.
  struct Clusters {
    std::string name;  // of the partition, in the store
    uint32_t number = 0;
    double links_kept = 0;  // the share of edges that lie within clusters
    double balance = 1;     // the largest cluster over the mean
    bool reused = false;    // it was there already
  };
  Clusters partition(const Settings& options = {}, const Session& session = {}) const;

  const std::string& name() const;
  std::string store() const;  // its folder; empty if it is in memory
  uint64_t num_nodes() const;
  uint64_t num_edges() const;
  uint64_t num_features() const;  // 0: none
  uint32_t num_classes() const;
  bool directed() const;
  bool multi_label() const;
  bool regression() const;                      // labels are numbers
  std::array<uint64_t, 3> split_sizes() const;  // training, validation, test
  std::vector<std::string> class_names() const;
  std::vector<std::string> feature_names() const;
  std::vector<std::string> node_ids() const;  // what an imported graph calls its nodes; empty: they are numbered
  std::string hash() const;                   // equal data has equal hashes

  // What it holds, to look at: they stay as long as their owner. Of a kind that it does not have: empty.
  Array offsets() const;                         // uint64
  Array targets() const;                         // uint32
  Array weights() const;                         // float32
  Array features() const;                        // dense ones: float32 or float16
  std::array<Array, 3> sparse_features() const;  // offsets uint64, columns uint32, values float32
  Array labels() const;  // int32, -1: none; float32, NaN: none, of regression; or nodes × classes of uint8
  Array split() const;   // uint8: 0 training, 1 validation, 2 test, 255 none

  struct Content;
  explicit Graph(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  const Content& content() const { return *content_; }

 private:
  std::shared_ptr<const Content> content_;
};

// The settings of a training, by the names that docs/options.md gives, with '_' as good as '-'.
struct OptionInfo {
  std::string name, kind, default_value, help, group;  // kind: flag, integer, real, text, choice
  std::vector<std::string> choices;
};
class CLUSTERGCN_API Options {
 public:
  Options();
  ~Options();
  Options(const Options& other);
  Options& operator=(const Options& other);
  // Settings by name; set() before it is overruled. Without one, train() chooses from the graph what nobody set.
  Options& recipe(const std::string& name);
  Options& set(const std::string& name, const std::string& value);
  std::string get(const std::string& name) const;
  static std::vector<OptionInfo> all();

  struct Content;
  const Content& content() const { return *content_; }

 private:
  std::unique_ptr<Content> content_;
};

struct Scores {
  uint64_t nodes = 0;
  double micro_f1 = 0, macro_f1 = 0, accuracy = 0, loss = 0;
  double calibration_error = 0;  // expected calibration error, 15 bins
  // After the model's temperature; of two classes or a multi-label graph. Not of validations while training.
  std::optional<double> calibrated_error, roc_auc, average_precision;
  std::optional<double> r2, mae, rmse;  // of regression, which has none of those above but the loss
};
struct Evaluation {
  Scores train, validation, test;
};
struct Epoch {
  uint32_t number = 0, of = 0;  // from 1
  double loss = 0, learning_rate = 0, seconds = 0;
  std::optional<Scores> validation;
};

// What is made of a model's output.
struct OutputOptions {
  bool calibrated = false;         // probabilities of the logits divided by temperature(); smoothed ones always are
  std::string smooth = "trained";  // none, correct, smooth, both or labels: as clustergcn predict --smooth
};

struct Matrix {
  uint64_t rows = 0, columns = 0;
  std::vector<float> values;  // row-major
};

class CLUSTERGCN_API Model {
 public:
  static Model load(const std::string& path);  // a run folder, or a .safetensors file
  static Model from_bytes(const std::string& bytes);
  std::string to_bytes() const;  // what the file holds
  void save(const std::string& file) const;

  // The same model that computes in "float32" or "bfloat16"; "trained": as the option precision of its training.
  Model in_precision(const std::string& name) const;

  // Rows are the nodes asked for, in their order; none: all nodes.
  Matrix probabilities(const Graph& graph, std::span<const uint32_t> nodes = {}, const Session& session = {},
                       const OutputOptions& output = {}) const;
  // One column: the number of the class. Multi-label: a column per class, of 0 and 1.
  Matrix classes(const Graph& graph, std::span<const uint32_t> nodes = {}, const Session& session = {},
                 const OutputOptions& output = {}) const;
  // Of regression: one number per node. Error if the model predicts classes.
  Matrix values(const Graph& graph, std::span<const uint32_t> nodes = {}, const Session& session = {}) const;
  // The output of a layer, from 1; 0: the last hidden one.
  Matrix embeddings(const Graph& graph, uint32_t layer = 0, std::span<const uint32_t> nodes = {},
                    const Session& session = {}) const;
  Evaluation evaluate(const Graph& graph, const Session& session = {}, const OutputOptions& output = {}) const;

  uint32_t num_layers() const;
  uint64_t num_features() const;
  uint32_t num_classes() const;
  bool multi_label() const;
  bool regression() const;
  std::vector<float> thresholds() const;      // multi-label: a class is predicted if its logit is above
  std::optional<double> temperature() const;  // that fits the validation nodes best; none: there were none
  std::vector<std::string> class_names() const;
  std::vector<std::string> feature_names() const;
  Options options() const;

  struct Content;
  explicit Model(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  const Content& content() const { return *content_; }

 private:
  std::shared_ptr<const Content> content_;
};

struct Training {
  Model model;
  std::vector<Epoch> history;
  Evaluation evaluation;  // of the model, on the whole graph
  uint32_t kept_epoch = 0;
  bool stopped_early = false;
  double seconds = 0;
  std::string run;  // the folder; empty: none
};
CLUSTERGCN_API Training train(const Graph& graph, const Options& options = {}, const Session& session = {});

}  // namespace clustergcn
