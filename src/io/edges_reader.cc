// “edges”: an edge list as text, with features, labels and split beside it as text or .npy.
//   edges.csv (or .tsv, .txt, .edges; any name where the file itself is given)
//   features.csv or features.npy         none: each node is its own feature
//   labels.csv or labels.npy             a class a node, (id, class) pairs, or a column of 0/1 for each class
//   split.npy, or lists of ids train.txt, val.txt and test.txt
//
// Ids are row numbers of the features (or labels) where those do not name their nodes; otherwise they are names, kept
// in the store. Text may be gzip-compressed.
#include <algorithm>
#include <array>

#include "common/log.h"
#include "io/csv_tables.h"
#include "io/edge_table.h"
#include "io/import_steps.h"

namespace cgcn {
namespace {

// base.csv, base.tsv, base.txt, each perhaps with .gz behind it; or the other endings given.
fs::path find_text(const fs::path& folder, std::initializer_list<const char*> bases,
                   std::initializer_list<const char*> endings = {".csv", ".tsv", ".txt"}) {
  for (const char* base : bases)
    for (const char* ending : endings)
      if (fs::path found = find_plain_or_gzip(folder / (std::string(base) + ending)); !found.empty()) return found;
  return {};
}

fs::path find_edges(const fs::path& folder) {
  return find_text(folder, {"edges", "edge", "edge_list", "edgelist", "graph", "links"},
                   {".csv", ".tsv", ".txt", ".edges", ".edgelist"});
}

struct TextFiles {
  fs::path edges, features, labels, split;
  std::array<fs::path, 3> parts;
};

TextFiles find_text_files(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  const bool is_folder = fs::is_directory(source, error);
  const fs::path folder = is_folder ? source : source.parent_path();
  const auto find = [&](const std::string& named, std::initializer_list<const char*> bases) {
    if (!named.empty()) return fs::path(named);
    fs::path found = find_text(folder, bases, {".npy"});
    return found.empty() ? find_text(folder, bases) : found;
  };
  TextFiles files;
  files.edges = is_folder ? find_edges(folder) : source;
  if (files.edges.empty()) throw Error("holds no edges.csv, edges.tsv or edges.txt", folder.string());
  files.features = find(options.features, {"features", "feats", "x"});
  files.labels = find(options.labels, {"labels", "label", "y"});
  files.split = options.split_file.empty() ? find_file(folder, {"split.npy"}) : fs::path(options.split_file);
  if (!files.split.empty()) return files;
  files.parts = {find_text(folder, {"train", "train_idx"}),
                 find_text(folder, {"val", "valid", "validation", "val_idx", "valid_idx"}),
                 find_text(folder, {"test", "test_idx"})};
  return files;
}

bool is_npy(const fs::path& path) { return path.extension() == ".npy"; }

class TextImport {
 public:
  TextImport(const TextFiles& files, const ImportOptions& options, StoreWriter& store, ImportReport& report)
      : files_(files), options_(options), store_(store), report_(report) {
    if (!files.features.empty() && !is_npy(files.features)) feature_shape_ = look_at_features(files.features);
    if (!files.labels.empty() && !is_npy(files.labels)) label_shape_ = look_at_labels(files.labels);
    edge_shape_ = look_at_edges(files.edges, options.header);
  }

  void run() {
    try {
      read_nodes_and_edges(/*fast=*/true);
    } catch (const NodeIndex::NotFast&) {
      read_nodes_and_edges(/*fast=*/false);
    }
    index_->close(files_.edges);
    const NodeId n = check_node_count(index_->size(), files_.edges.string());
    say_how_the_first_line_was_read();
    SettledEdges settled(*edges_, &*index_);
    const bool no_edges = edges_->size() == 0;
    const std::vector<bool> touched = import_graph(n, settled, options_, store_, report_);
    if (no_edges)
      log::warn("{}: holds no edge", files_.edges.string());
    else
      compare_ids(touched);
    if (!edge_shape_.ignored.empty()) report_.lines.push_back("columns not read: " + edge_shape_.ignored);
    if (files_.features.empty()) import_identity_features(n, store_, report_);
    if (is_npy(files_.features)) import_features(Array::open_npy(files_.features), n, store_);
    const ClassTable::Result classes = settle_labels(n);
    store_.write_class_names(classes.names);
    import_labels_and_split(classes.labels, read_parts(n), n, options_, store_, report_);
    store_.write_ids(index_->take_ids());
  }

 private:
  // Whatever lists all nodes says how many there are; edges alone know only the nodes that they touch.
  void read_nodes_and_edges(bool fast) {
    edges_.reset();
    label_table_.reset();
    if (feature_shape_) {
      NodeIndex listed = NodeIndex::listed();
      const NodeId n = import_feature_table(files_.features, *feature_shape_, &listed, store_);
      listed.close(files_.features);
      index_ = feature_shape_->ids ? std::move(listed) : NodeIndex::rows(n, files_.features);
    } else if (is_npy(files_.features)) {
      index_ = rows_of(files_.features);
    } else if (is_npy(files_.labels)) {
      index_ = rows_of(files_.labels);
    } else if (label_shape_ && !label_shape_->ids) {
      label_table_.emplace(files_.labels, *label_shape_, nullptr);
      index_ = NodeIndex::rows(check_node_count(label_table_->rows(), files_.labels.string()), files_.labels);
    } else {
      index_ = NodeIndex::open(fast);
    }
    if (label_shape_ && !label_table_) label_table_.emplace(files_.labels, *label_shape_, &*index_);
    edges_.emplace(read_edge_table(files_.edges, edge_shape_, *index_));
  }

  void say_how_the_first_line_was_read() const {
    const std::string& line = edge_shape_.doubtful;
    if (line.empty()) return;
    if (edge_shape_.header)
      report_.lines.push_back(fmt::format("first line read as a header: {} (--header no: as an edge)", show(line)));
    else if (first_edge_stands_alone(*edges_))
      log::warn(
          "{}: the first line, {}, was read as an edge, but its ids occur nowhere else; if it names the columns: "
          "--header yes",
          files_.edges.string(), show(line));
  }

  // Ids that only one of the two files has may be meant so (isolated nodes, unlabelled ones), or be a mistake.
  void compare_ids(const std::vector<bool>& touched) {
    const auto nodes = static_cast<NodeId>(touched.size());
    const auto with_edges = static_cast<uint64_t>(std::count(touched.begin(), touched.end(), true));
    if (!label_shape_ || !label_shape_->ids) {
      report_.add_line(nodes - with_edges, "node has", "nodes have", "no edge");
      return;
    }
    const std::vector<NodeId> labelled = label_table_->nodes(*index_);
    const auto both =
        static_cast<uint64_t>(std::count_if(labelled.begin(), labelled.end(), [&](NodeId v) { return touched[v]; }));
    if (both == 0)
      throw Error(fmt::format("none of its {} ids is among the edges, such as {}", labelled.size(),
                              show(label_table_->first_id())),
                  files_.labels.string(),
                  fmt::format("the ids of {}, such as {}", files_.edges.filename().string(), show(first_edge_id())));
    if (!touched[labelled[0]] && label_table_->first_line_is_doubtful())
      log::warn(
          "{}: the first line was read as a label of node {}, which has no edge; if it names the columns, call "
          "them id and label",
          files_.labels.string(), show(label_table_->first_id()));
    report_.add_line(labelled.size() - both, "labelled node has", "labelled nodes have", "no edge");
    report_.add_line(with_edges - both, "node with edges is", "nodes with edges are",
                     "not in " + files_.labels.filename().string());
  }

  std::string first_edge_id() const {
    LineReader lines(files_.edges);
    std::string_view line;
    for (int skip = edge_shape_.header ? 1 : 0; lines.next_content(line) && skip > 0;) --skip;
    return std::string(FieldSplitter(line).split(line, lines).at(edge_shape_.from));
  }

  static NodeIndex rows_of(const fs::path& npy) {
    return NodeIndex::rows(check_node_count(Array::open_npy(npy).rows(), npy.string()), npy);
  }

  ClassTable::Result settle_labels(NodeId n) const {
    if (label_table_) return label_table_->settle(n, *index_);
    if (is_npy(files_.labels)) return {read_labels(Array::open_npy(files_.labels), n), {}};
    return {};
  }

  std::vector<uint8_t> read_parts(NodeId n) {
    if (!files_.split.empty()) return read_split(Array::open_npy(files_.split), n);
    if (files_.parts[0].empty()) return {};
    std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
    for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest}) {
      const fs::path& part = files_.parts[static_cast<size_t>(role)];
      if (part.empty()) continue;
      LineReader lines(part);
      std::string_view line;
      while (lines.next_content(line)) {
        if (lines.line_number() == 1 && names_a_node_column(line)) continue;
        const std::string_view id = FieldSplitter(line).split(line, lines)[0];
        assign_role(index_->final(index_->put(id, lines)), role, lines.where(), split);
      }
    }
    return split;
  }

  const TextFiles& files_;
  const ImportOptions& options_;
  StoreWriter& store_;
  ImportReport& report_;
  std::optional<TableShape> feature_shape_, label_shape_;
  EdgeTableShape edge_shape_;
  std::optional<NodeIndex> index_;
  std::optional<LabelTable> label_table_;
  std::optional<EdgeList> edges_;
};

class EdgesReader final : public Reader {
 public:
  std::string name() const override { return "edges"; }
  std::string description() const override {
    return "an edge list as text (CSV, TSV or blanks), or a folder with edges.csv, and features, labels, split beside "
           "it";
  }
  bool recognises(const fs::path& source) const override {
    std::error_code error;
    if (fs::is_directory(source, error)) return !find_edges(source).empty();
    fs::path plain = source;
    if (plain.extension() == ".gz") plain.replace_extension();
    const std::string ending = plain.extension().string();
    for (const char* known : {".csv", ".tsv", ".txt", ".edges", ".edgelist"})
      if (ending == known) return fs::is_regular_file(source, error);
    return false;
  }
  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    const TextFiles files = find_text_files(source, options);
    TextImport(files, options, store, report).run();
  }
};

}  // namespace

std::unique_ptr<Reader> make_edges_reader() { return std::make_unique<EdgesReader>(); }

}  // namespace cgcn
