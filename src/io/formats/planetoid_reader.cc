// “planetoid”: ind.NAME.{x,tx,allx,y,ty,ally,graph,test.index}, the files of Yang, Cohen and Salakhutdinov (2016), as
// Kipf and Welling's GCN and everybody after them read them.
//
// Row i of allx is node i. Row k of tx is the node on line k of test.index; those ids follow allx's and may have gaps
// (Citeseer): a node in a gap has no features, no label and no role. Training nodes are the first len(y), validation
// the next 500, test those of test.index.
#include <charconv>
#include <set>

#include "common/error.h"
#include "common/progress.h"
#include "io/formats/import_steps.h"
#include "io/numpy/array_edges.h"
#include "io/serialised/pickle.h"

namespace cgcn {
namespace {

constexpr uint64_t kValidationNodes = 500;

// "folder/ind.cora" for a folder with one data set, for "folder/ind.cora" itself or for one of its files.
fs::path find_stem(const fs::path& source) {
  std::error_code error;
  const auto is_stem = [&](const fs::path& stem) {
    return stem.filename().string().starts_with("ind.") && fs::is_regular_file(fs::path(stem) += ".graph", error);
  };
  if (!fs::is_directory(source, error)) {
    for (fs::path stem = source; stem.has_extension(); stem.replace_extension())
      if (is_stem(stem)) return stem;
    return {};
  }
  std::set<fs::path> stems;
  for (const auto& entry : fs::directory_iterator(source, error))
    if (entry.path().extension() == ".graph" && is_stem(fs::path(entry.path()).replace_extension()))
      stems.insert(fs::path(entry.path()).replace_extension());
  if (stems.size() > 1)
    throw Error(fmt::format("holds {} Planetoid data sets", stems.size()), source.string(),
                fmt::format("name one of them: {}", stems.begin()->string()));
  return stems.empty() ? fs::path() : *stems.begin();
}

fs::path file_of(const fs::path& stem, const char* ending) { return fs::path(stem) += ending; }

// The ids on the lines of test.index, as rows of tx: node → row, for the nodes from `first` on.
class TestIndex {
 public:
  TestIndex(const fs::path& path, uint64_t first, uint64_t rows) : first_(first) {
    const std::string text = read_text_file(path);
    const char* at = text.data();
    const char* end = at + text.size();
    for (uint64_t line = 1;; ++line) {
      while (at < end && (*at == '\n' || *at == '\r' || *at == ' ')) ++at;
      if (at == end) break;
      int64_t id = 0;
      const auto [rest, status] = std::from_chars(at, end, id);
      const std::string where = fmt::format("{}:{}", path.string(), line);
      if (status != std::errc() || (rest < end && *rest != '\n' && *rest != '\r' && *rest != ' '))
        throw Error("holds something that is no node id", where);
      if (id < static_cast<int64_t>(first_))
        throw Error(fmt::format("names test node {}, but the test nodes follow the {} of allx", id, first_), where);
      // A gap can be wide only if rows are missing: what is beyond twice the rows is no test id of this data set.
      if (static_cast<uint64_t>(id) - first_ > 2 * rows + 1000)
        throw Error(fmt::format("names test node {}, but allx and tx have {} rows together", id, first_ + rows), where);
      ids_.push_back(static_cast<uint64_t>(id));
      at = rest;
    }
    if (ids_.size() != rows)
      throw Error(fmt::format("lists {} nodes, but tx has {} rows", ids_.size(), rows), path.string());
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t place = ids_[row] - first_;
      if (place >= rows_.size()) rows_.resize(place + 1, -1);
      if (rows_[place] >= 0) throw Error(fmt::format("lists node {} twice", ids_[row]), path.string());
      rows_[place] = static_cast<int64_t>(row);
    }
  }
  uint64_t num_nodes() const { return first_ + rows_.size(); }
  const std::vector<uint64_t>& ids() const { return ids_; }
  int64_t row_of(uint64_t node) const { return rows_[node - first_]; }  // -1: in a gap
  uint64_t gaps() const { return rows_.size() - ids_.size(); }

 private:
  uint64_t first_;
  std::vector<uint64_t> ids_;
  std::vector<int64_t> rows_;
};

void import_planetoid_features(const SparseMatrix& allx, const SparseMatrix& tx, const TestIndex& test,
                               NodeId num_nodes, StoreWriter& store) {
  if (tx.rows > 0 && tx.columns != allx.columns)
    throw Error(fmt::format("has {} features, but allx has {}", tx.columns, allx.columns), tx.where());
  SparseFeatureRows rows(store, num_nodes, allx.columns, allx.where());
  for_each_row(allx, [&](uint64_t, auto columns, auto values) { rows.append(columns, values); });
  // tx in the order of the nodes: its rows are small enough to keep.
  std::vector<std::pair<std::vector<int64_t>, std::vector<float>>> kept(tx.rows);
  for_each_row(tx, [&](uint64_t row, auto columns, auto values) {
    kept[row] = {{columns.begin(), columns.end()}, {values.begin(), values.end()}};
  });
  for (uint64_t v = allx.rows; v < num_nodes; ++v) {
    const int64_t row = test.row_of(v);
    if (row < 0)
      rows.append_empty();
    else
      rows.append(kept[static_cast<size_t>(row)].first, kept[static_cast<size_t>(row)].second);
  }
  rows.finish();
}

// One-hot rows; a row of zeros is a node without a label, and if any row has several ones they are several labels.
class OneHotLabels {
 public:
  OneHotLabels(NodeId num_nodes, uint64_t num_classes, const std::string& where)
      : num_classes_(check_class_count(static_cast<int64_t>(num_classes) - 1, where)),
        classes_(num_nodes, -1),
        bits_(num_nodes, num_classes_) {}

  template <class NodeOf>
  void add(const Array& labels, NodeOf&& node_of) {
    if (labels.columns() != num_classes_)
      throw Error(fmt::format("has {} classes, but ally has {}", labels.columns(), num_classes_), labels.where());
    for_each_row_block<float>(labels, [&](uint64_t first, std::span<const float> block) {
      for (size_t i = 0; i < block.size(); ++i) {
        if (block[i] == 0) continue;
        const uint64_t row = first + i / num_classes_;
        const auto label = static_cast<uint32_t>(i % num_classes_);
        if (block[i] != 1)
          throw Error(fmt::format("row {}, column {} holds {}, but a label is 0 or 1", row, label, block[i]),
                      labels.where());
        const NodeId v = node_of(row);
        several_ = several_ || classes_[v] >= 0;
        classes_[v] = static_cast<int32_t>(label);
        bits_.set(v, label);
      }
    });
  }
  Labels take(bool multi_label) {
    return several_ || multi_label ? bits_.take() : Labels::single(std::move(classes_), num_classes_);
  }

 private:
  uint32_t num_classes_;
  std::vector<int32_t> classes_;
  LabelBits bits_;
  bool several_ = false;
};

Array open_one_hot(const fs::path& path, uint64_t rows) {
  Array labels = Pickle(path).array();
  labels.require_numbers("labels");
  labels.require_dimensions(2, "one-hot labels");
  if (labels.rows() != rows)
    throw Error(fmt::format("holds labels of {} nodes, but the features are of {}", labels.rows(), rows),
                labels.where());
  return labels;
}

class PlanetoidReader final : public Reader {
 public:
  std::string name() const override { return "planetoid"; }
  std::string description() const override {
    return "a folder with ind.NAME.graph, .allx, .ally, .tx, .ty, .y and .test.index";
  }
  bool recognises(const fs::path& source) const override { return !find_stem(source).empty(); }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    refuse_file_options(options, name());
    const fs::path stem = find_stem(source);
    if (stem.empty()) throw Error("has no ind.NAME.graph", source.string());
    report.name = stem.filename().string().substr(4);

    const SparseMatrix allx = Pickle(file_of(stem, ".allx")).matrix(), tx = Pickle(file_of(stem, ".tx")).matrix();
    const TestIndex test(file_of(stem, ".test.index"), allx.rows, tx.rows);
    const NodeId n = check_node_count(test.num_nodes(), stem.string());

    import_planetoid_graph(file_of(stem, ".graph"), n, options, store, report);
    import_planetoid_features(allx, tx, test, n, store);
    const Array ally = open_one_hot(file_of(stem, ".ally"), allx.rows);
    OneHotLabels labels(n, ally.columns(), ally.where());
    labels.add(ally, [](uint64_t row) { return static_cast<NodeId>(row); });
    labels.add(open_one_hot(file_of(stem, ".ty"), tx.rows),
               [&](uint64_t row) { return static_cast<NodeId>(test.ids()[row]); });
    if (test.gaps() > 0)
      report.lines.push_back(fmt::format("{} ids missing from the test index: nodes without features, label and role",
                                         format_count(test.gaps())));
    import_labels_and_split({labels.take(options.multi_label), {}}, public_split(stem, allx.rows, test), n, options,
                            store, report);
  }

 private:
  static void import_planetoid_graph(const fs::path& path, NodeId n, const ImportOptions& options, StoreWriter& store,
                                     ImportReport& report) {
    EdgeList edges;
    Pickle(path).for_each_list([&](int64_t node, std::span<const int64_t> neighbours) {
      const NodeId from = check_node(node, edges.size(), n, path.string());
      for (const int64_t neighbour : neighbours) edges.add(from, check_node(neighbour, edges.size(), n, path.string()));
    });
    import_graph(n, edges, options, store, report);
  }

  static std::vector<uint8_t> public_split(const fs::path& stem, uint64_t known, const TestIndex& test) {
    const uint64_t train = Pickle(file_of(stem, ".y")).array().rows();
    if (train > known)
      throw Error(fmt::format("holds labels of {} training nodes, but allx has {} rows", train, known),
                  file_of(stem, ".y").string());
    std::vector<uint8_t> split(test.num_nodes(), static_cast<uint8_t>(Role::kNone));
    for (uint64_t v = 0; v < std::min(known, train + kValidationNodes); ++v)
      split[v] = static_cast<uint8_t>(v < train ? Role::kTrain : Role::kValidation);
    for (const uint64_t v : test.ids()) split[v] = static_cast<uint8_t>(Role::kTest);
    return split;
  }
};

}  // namespace

std::unique_ptr<Reader> make_planetoid_reader() { return std::make_unique<PlanetoidReader>(); }

}  // namespace cgcn
