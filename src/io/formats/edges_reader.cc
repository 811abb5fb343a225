// “edges”: an edge list as text, with features, labels and split in files of the same folder, as text or arrays.
//   edges.csv (or .tsv, .txt, .edges; any name if the file itself is given)
//   features.csv, .npy or .npz           none: each node is its own feature
//   labels.csv, .npy or .npz             a class per node, (id, class) pairs, or a column of 0/1 for each class
//   split.csv or split.npy, or lists of ids train.txt, val.txt and test.txt
//
// Ids are row numbers of the features (or labels) if those do not name their nodes; otherwise they are names, kept
// in the store. Text may be gzip-compressed.
#include <algorithm>

#include "common/log.h"
#include "common/progress.h"
#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/formats/text_files.h"
#include "io/formats/text_split.h"
#include "io/numpy/array_features.h"
#include "io/text/feature_table.h"
#include "io/text/label_table.h"

namespace cgcn {
namespace {

// The first ids of some nodes, for a message.
std::string list_ids(const NodeIds& ids, const std::vector<NodeId>& nodes) {
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min<size_t>(5, nodes.size()); ++i) some.push_back(ids.text(nodes[i]));
  return fmt::format("{}{}", fmt::join(some, ", "), nodes.size() > some.size() ? " …" : "");
}

class TextImport {
 public:
  TextImport(const TextFiles& files, const ImportOptions& options, StoreWriter& store, ImportReport& report)
      : files_(files),
        options_(options),
        store_(store),
        report_(report),
        edge_shape_(look_at_edges(files, options, report)),
        edge_ids_(files.edges.filename().string(), {edge_shape_.from_name, edge_shape_.to_name},
                  [this] { return read_edge_ids(files_.edges, edge_shape_); }) {
    if (!options.like.empty()) like_ = open_dataset(options.like);
    refuse_idle_options();
    tell(files.edges, "source", describe_columns(edge_shape_));
    look_at_tables();
  }

  void run() {
    try {
      read_nodes_and_edges(/*fast=*/true);
    } catch (const NodeIndex::NotFast&) {
      read_nodes_and_edges(/*fast=*/false);
    }
    index_->close(files_.edges);
    const NodeId n = check_node_count(index_->size(), files_.edges.string());
    SettledEdges settled(*edges_, &*index_);
    const bool no_edges = edges_->size() == 0;
    const std::vector<bool> touched = import_graph(n, settled, options_, store_, report_);
    if (no_edges) log::warn("{}: holds no edge", files_.edges.string());
    if (files_.features.empty()) import_identity_features(n, store_, report_);
    if (feature_array_) feature_array_->import_into(store_, n);
    ClassTable::Result classes = settle_labels(n);
    std::vector<uint8_t> split =
        TextSplit(files_, options_, split_columns_, store_.staging(), *index_, report_).read(n);
    if (!options_.id_column.empty() && !edge_ids_.option_used)
      throw Error(fmt::format("no table has a column {}", show(options_.id_column)), "--id-column");
    if (label_table_ && label_table_->has_ids() && !no_edges) require_shared_ids(touched);
    split = import_labels_and_split(std::move(classes), std::move(split), n, options_, store_, report_);
    if (features_) features_->finish(split, store_, report_);
    const NodeIds ids = index_->take_ids();
    if (!no_edges) compare_ids(touched, ids);
    store_.write_ids(ids);
  }

 private:
  // What is said of a table that there is not.
  void refuse_idle_options() const {
    const bool features = files_.has_feature_table(), like = !options_.like.empty();
    const auto refuse = [&](bool idle, const char* option, const char* what) {
      if (idle) throw Error(what, option, "leave it out");
    };
    const char* no_features = "there is no text file of features";
    const bool missing = options_.missing != MissingValues::kRefuse,
               categorical = options_.categorical != Categorical::kRefuse, drop = !options_.drop_columns.empty();
    if (missing && !features)
      throw Error("fills values of a text file of features, and there is none", "--missing",
                  "leave it out; in an array: numpy.nan_to_num");
    refuse(categorical && !features, "--categorical", no_features);
    refuse(drop && !features, "--drop-columns", no_features);
    refuse(options_.features_header != HeaderLine::kAuto && !features, "--features-header", no_features);
    const char* as_there = "the encoding is that of --like";
    refuse(missing && like, "--missing", as_there);
    refuse(categorical && like, "--categorical", as_there);
    refuse(drop && like, "--drop-columns", as_there);
    const char* no_labels = "there is no text file of labels";
    refuse(!options_.label_column.empty() && !files_.has_label_table(), "--label-column", no_labels);
    refuse(options_.labels_header != HeaderLine::kAuto && !files_.has_label_table(), "--labels-header", no_labels);
    refuse(like && !features && !files_.has_label_table(), "--like", "there is no text file of features or labels");
  }

  void look_at_tables() {
    look_at_label_file();
    if (!files_.split.empty() && !holds_arrays(files_.split))
      split_columns_ = choose_split_columns(files_.split, options_, edge_ids_);
    if (holds_arrays(files_.features)) {
      feature_array_.emplace(files_.features, store_.staging());
      tell(files_.features, options_.features, "an array, row i is node i");
    } else if (!files_.features.empty()) {
      const TableHead head = look_at_features(files_, options_);
      features_.emplace(head, choose_node_column(head, options_.id_column, edge_ids_), options_,
                        answers_among_features(head), encoding_like());
      tell(files_.features, options_.features, features_->describe());
    }
    if (label_array_)
      tell(files_.labels, options_.labels,
           features_ && features_->has_ids()
               ? fmt::format("an array, row i is row i of {}", files_.features.filename().string())
               : "an array, row i is node i");
    else if (!files_.labels.empty())
      tell(files_.labels, options_.labels, label_columns_.describe(label_head_));
  }

  void look_at_label_file() {
    if (holds_arrays(files_.labels)) {
      label_array_ = open_array(files_.labels, store_.staging());
    } else if (!files_.labels.empty()) {
      label_head_ = look_at_labels(files_, options_);
      if (!label_head_.header && options_.header == HeaderLine::kAuto && options_.labels_header == HeaderLine::kAuto &&
          (edge_ids_.has_column(label_head_.rows[0][0]) ||  // texts under a column that the edge list has, too
           is_header_by_ids(label_head_, edge_ids_))) {
        report_.lines.push_back(fmt::format("{}: first line read as a header (--labels-header no: as a row)",
                                            files_.labels.filename().string()));
        label_head_ = look_at_table(files_.labels, HeaderLine::kYes, TableKind::kClasses);
      }
      label_columns_ = choose_label_columns(label_head_, options_.id_column, options_.label_column, edge_ids_);
    }
  }

  // One file may hold features, labels and split, or a features file the labels a second time. What is to be predicted
  // must not be a feature.
  std::vector<size_t> answers_among_features(const TableHead& features) const {
    std::vector<size_t> answers;
    if (files_.has_label_table() && fs::equivalent(files_.labels, files_.features)) {
      answers = label_columns_.classes;
    } else if (files_.has_label_table() && label_head_.header && features.header) {
      for (const size_t c : label_columns_.classes) {
        if (parse_number(label_head_.names[c])) continue;  // pandas numbers the columns of every table from 0
        if (const size_t same = features.find(label_head_.names[c]); same != TableHead::kNone) answers.push_back(same);
      }
    }
    if (split_columns_ && fs::equivalent(files_.split, files_.features)) answers.push_back(split_columns_->role);
    std::sort(answers.begin(), answers.end());
    return answers;
  }

  void tell(const fs::path& file, const std::string& named, const std::string& what) {
    files_.tell(file, named, what, report_);
  }

  std::vector<ColumnEncoding> encoding_like() const {
    if (options_.like.empty()) return {};
    if (!like_.encoding.empty()) return like_.encoding;
    if (like_.feature_names.empty())
      throw Error("the columns of its features have no names", options_.like,
                  "import it from a features file with a header line");
    std::vector<ColumnEncoding> columns;
    for (const std::string& name : like_.feature_names) columns.emplace_back().name = name;
    return columns;
  }

  // Whatever lists all nodes says how many there are; edges alone know only the nodes that they touch.
  void read_nodes_and_edges(bool fast) {
    edges_.reset();
    label_table_.reset();
    if (features_) {
      NodeIndex listed = NodeIndex::listed();
      const NodeId n = features_->read(&listed, store_);
      listed.close(files_.features);
      index_ = features_->has_ids() ? std::move(listed) : NodeIndex::rows(n, files_.features);
    } else if (feature_array_) {
      index_ = NodeIndex::rows(feature_array_->rows(), files_.features);
    } else if (label_array_) {
      index_ = NodeIndex::rows(check_node_count(label_array_->rows(), label_array_->where()), files_.labels);
    } else if (files_.has_label_table() && !label_columns_.ids.exists()) {
      label_table_.emplace(label_head_, label_columns_, nullptr);
      refuse_doubtful_header();
      index_ = NodeIndex::rows(check_node_count(label_table_->rows(), files_.labels.string()), files_.labels);
    } else {
      index_ = NodeIndex::open(fast);
    }
    if (files_.has_label_table() && !label_table_) label_table_.emplace(label_head_, label_columns_, &*index_);
    edges_.emplace(read_edge_table(files_.edges, edge_shape_, *index_, {options_.memory, store_.staging()}));
  }

  // pandas calls a column without a name 0: over labels that looks like the class of node 0, and all others move by
  // one.
  void refuse_doubtful_header() {
    if (label_head_.header || options_.header != HeaderLine::kAuto || options_.labels_header != HeaderLine::kAuto)
      return;
    if (label_head_.width > 1 || label_head_.rows[0][0] != "0") return;
    if (edge_ids_.get().size() + 1 != label_table_->rows()) return;
    throw Error(fmt::format("has {} lines, but the edges have {} nodes: its first line, '0', may name the column",
                            format_count(label_table_->rows()), format_count(edge_ids_.get().size())),
                files_.labels.string(),
                "--labels-header yes if it does, --labels-header no if it is the class of node 0");
  }

  // Labels of none of the nodes that have edges are another graph's.
  void require_shared_ids(const std::vector<bool>& touched) const {
    const std::vector<NodeId> listed = label_table_->nodes(*index_);
    if (std::none_of(listed.begin(), listed.end(), [&](NodeId v) { return touched[v]; }))
      throw Error(fmt::format("none of its {} ids is among the edges, such as {}", listed.size(),
                              show(label_table_->first_id())),
                  files_.labels.string(),
                  fmt::format("the ids of {}, such as {}", files_.edges.filename().string(), show(first_edge_id())));
    if (!touched[listed[0]] && label_table_->first_line_is_doubtful())
      log::warn(
          "{}: the first line was read as a label of node {}, which has no edge; if it names the columns, call "
          "them id and label",
          files_.labels.string(), show(label_table_->first_id()));
  }

  // Ids that only some of the files have may be meant so (isolated nodes, unlabelled ones), or be a mistake.
  void compare_ids(const std::vector<bool>& touched, const NodeIds& ids) {
    std::vector<bool> listed(touched.size(), true);
    const std::string labels = files_.labels.filename().string();
    if (label_table_ && label_table_->has_ids()) {
      listed.assign(touched.size(), false);
      for (const NodeId v : label_table_->nodes(*index_)) listed[v] = true;
    }
    std::vector<NodeId> no_edge, no_label;
    for (NodeId v = 0; v < touched.size(); ++v) {
      if (!touched[v]) no_edge.push_back(v);
      if (!listed[v]) no_label.push_back(v);
    }
    std::string text;
    const auto add = [&](const std::vector<NodeId>& nodes, const std::string& one, const std::string& many) {
      if (nodes.empty()) return;
      text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", format_count(nodes.size()),
                          nodes.size() == 1 ? one : many, list_ids(ids, nodes));
    };
    add(no_edge, "node has no edge", "nodes have no edge");
    add(no_label, "node is not in " + labels, "nodes are not in " + labels);
    if (!text.empty()) report_.lines.push_back(text);
  }

  std::string first_edge_id() const {
    LineReader lines(files_.edges);
    std::string_view line;
    for (int skip = edge_shape_.header ? 1 : 0; lines.next_content(line) && skip > 0;) --skip;
    return std::string(FieldSplitter(line).split(line, lines).at(edge_shape_.from));
  }

  ClassTable::Result settle_labels(NodeId n) const {
    if (label_table_ && options_.task == Task::kRegression) return label_table_->settle_numbers(n, *index_);
    const KnownClasses known{like_.class_names, like_.labels.num_classes(), options_.like};
    const KnownClasses* like = like_.labels.present() ? &known : nullptr;
    if (label_table_) return label_table_->settle(n, *index_, like, options_.multi_label);
    if (label_array_) return settle_array(read_labels(*label_array_, n, options_.task), label_array_->where(), like);
    return {};
  }

  const TextFiles& files_;
  const ImportOptions& options_;
  StoreWriter& store_;
  ImportReport& report_;
  EdgeTableShape edge_shape_;
  EdgeIds edge_ids_;
  Dataset like_;  // --like; empty if it is not given
  std::optional<FeatureTable> features_;
  std::optional<ArrayFeatures> feature_array_;
  std::optional<Array> label_array_;
  TableHead label_head_;
  LabelColumns label_columns_;
  std::optional<SplitColumns> split_columns_;
  std::optional<NodeIndex> index_;
  std::optional<LabelTable> label_table_;
  std::optional<EdgeList> edges_;
};

class EdgesReader final : public Reader {
 public:
  std::string name() const override { return "edges"; }
  std::string description() const override {
    return "an edge list as text (CSV, TSV or blanks), or a folder with edges.csv, and features, labels, split next to "
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
  bool reads_tables() const override { return true; }
  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    const TextFiles files = find_text_files(source, options);
    try {
      TextImport(files, options, store, report).run();
    } catch (const Error& error) {
      if (const std::optional<Error> explained = files.explain(error, options)) throw *explained;
      throw;
    }
  }
};

}  // namespace

std::unique_ptr<Reader> make_edges_reader() { return std::make_unique<EdgesReader>(); }

}  // namespace cgcn
