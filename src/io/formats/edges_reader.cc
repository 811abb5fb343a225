// “edges”: an edge list as text, with features, labels and split in files of the same folder, as text or arrays.
//   edges.csv (or .tsv, .txt, .edges; any name if the file itself is given)
//   features.csv, .npy or .npz           none: each node is its own feature
//   labels.csv, .npy or .npz             a class per node, (id, class) pairs, or a column of 0/1 for each class
//   split.csv or split.npy, or lists of ids train.txt, val.txt and test.txt
//
// Ids are row numbers of the features (or labels) if those do not name their nodes; otherwise they are names, kept
// in the store. Text may be gzip-compressed.
#include <algorithm>
#include <array>

#include "common/log.h"
#include "common/progress.h"
#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/numpy/array_features.h"
#include "io/text/edge_table.h"
#include "io/text/feature_table.h"
#include "io/text/label_table.h"
#include "io/text/split_table.h"

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
  std::array<fs::path, 3> role_lists;  // train.txt, val.txt, test.txt
  bool is_folder = false;
};

TextFiles find_text_files(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  TextFiles files;
  files.is_folder = fs::is_directory(source, error);
  const fs::path folder = files.is_folder ? source : source.parent_path();
  files.edges = files.is_folder ? find_edges(folder) : source;
  if (files.edges.empty()) throw Error("holds no edges.csv, edges.tsv or edges.txt", folder.string());
  const auto find = [&](const std::string& named, std::initializer_list<const char*> bases) {
    return named_or_found(named, [&] {
      fs::path found = find_array(folder, bases);
      return found.empty() ? find_text(folder, bases) : found;
    });
  };
  files.features = find(options.features, {"features", "feats", "x"});
  files.labels = find(options.labels, {"labels", "label", "y"});
  files.split = find(options.split_file, {"split"});
  if (!files.split.empty() || options.split_file == "none") return files;
  const auto find_list = [&](std::initializer_list<const char*> bases, std::initializer_list<const char*> masks) {
    fs::path found = find_text(folder, bases);
    if (found.empty()) found = find_array(folder, bases);
    return found.empty() ? find_array(folder, masks) : found;
  };
  files.role_lists = {
      find_list({"train", "train_idx"}, {"train_mask"}),
      find_list({"val", "valid", "validation", "dev", "val_idx", "valid_idx"}, {"val_mask", "valid_mask"}),
      find_list({"test", "test_idx"}, {"test_mask"})};
  return files;
}

// The first ids of some nodes, for a message.
std::string list_ids(const NodeIds& ids, const std::vector<NodeId>& nodes) {
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min<size_t>(5, nodes.size()); ++i) some.push_back(ids.text(nodes[i]));
  return fmt::format("{}{}", fmt::join(some, ", "), nodes.size() > some.size() ? " …" : "");
}

TableHead look_at_features(const TextFiles& files, const ImportOptions& options) {
  const HeaderLine own = options.features_header;
  return look_at_table(files.features, own == HeaderLine::kAuto ? options.header : own, TableKind::kFeatures);
}

TableHead look_at_labels(const TextFiles& files, const ImportOptions& options) {
  const HeaderLine own = options.labels_header;
  return look_at_table(files.labels, own == HeaderLine::kAuto ? options.header : own, TableKind::kClasses);
}

// Whether one column of the table has both ids.
bool lists_both(const TableHead& head, const std::pair<std::string, std::string>& ids) {
  std::vector<int> found(head.width, 0);
  LineReader lines(head.path);
  for_each_row(lines, head, [&](const std::vector<std::string_view>& fields) {
    for (size_t c = 0; c < head.width; ++c)
      found[c] |= (fields[c] == ids.first ? 1 : 0) | (fields[c] == ids.second ? 2 : 0);
  });
  return std::find(found.begin(), found.end(), 3) != found.end();
}

// The edge list's columns. If every id is a text, the first line may be a header of unknown words: the tables next to
// it decide, else the user.
EdgeTableShape settle_first_line(const TextFiles& files, const ImportOptions& options, ImportReport& report) {
  const EdgeTableShape shape = look_at_edges(files.edges, options.header);
  const std::string line = show(shape.doubtful);
  if (shape.doubtful.empty()) return shape;
  if (shape.header) {
    report.lines.push_back(fmt::format("first line read as a header: {} (--header no: as an edge)", line));
    return shape;
  }
  const FirstEdge first = look_at_first_edge(files.edges, shape);
  if (first == FirstEdge::kLikeOthers) return shape;
  std::vector<TableHead> heads;
  if (!files.features.empty() && !holds_arrays(files.features)) heads.push_back(look_at_features(files, options));
  if (!files.labels.empty() && !holds_arrays(files.labels)) heads.push_back(look_at_labels(files, options));
  for (const TableHead& head : heads)
    for (const std::string& word : {shape.first_ids.first, shape.first_ids.second})
      if (head.find(word) != TableHead::kNone) {
        report.lines.push_back(
            fmt::format("first line read as a header: {}: {} is a column of {} (--header no: as an edge)", line,
                        show(word), head.path.filename().string()));
        return look_at_edges(files.edges, HeaderLine::kYes);
      }
  for (const TableHead& head : heads)
    if (lists_both(head, shape.first_ids)) return shape;
  if (first == FirstEdge::kOnlyOneAlone) {
    std::string others;  // --header is about them, too
    for (const TableHead& head : heads)
      if (head.header) others += head.kind == TableKind::kFeatures ? " --features-header yes" : " --labels-header yes";
    throw Error(
        fmt::format("the first line, {}, may name the columns or be an edge: its words occur nowhere else", line),
        files.edges.string(),
        fmt::format("--header yes if it names the columns, --header no{} if it is an edge", others));
  }
  report.lines.push_back(fmt::format("first line read as an edge: {} (--header yes: as a header)", line));
  return shape;
}

class TextImport {
 public:
  TextImport(const TextFiles& files, const ImportOptions& options, StoreWriter& store, ImportReport& report)
      : files_(files),
        options_(options),
        store_(store),
        report_(report),
        edge_shape_(settle_first_line(files, options, report)),
        edge_ids_(files.edges.filename().string(), {edge_shape_.from_name, edge_shape_.to_name},
                  [this] { return read_edge_ids(files_.edges, edge_shape_); }) {
    if (!options.like.empty()) like_ = open_dataset(options.like);
    refuse_idle_options();
    tell_file(files.edges, "source", describe_columns(edge_shape_));
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
    const ClassTable::Result classes = settle_labels(n);
    store_.write_class_names(classes.names);
    tell_doubtful_labels(classes);
    std::vector<uint8_t> split = read_split_files(n);
    if (!options_.id_column.empty() && !edge_ids_.option_used)
      throw Error(fmt::format("no table has a column {}", show(options_.id_column)), "--id-column");
    if (label_table_ && label_table_->has_ids() && !no_edges) require_shared_ids(touched);
    split = import_labels_and_split(classes.labels, std::move(split), n, options_, store_, report_, classes.listed);
    if (features_) features_->finish(split, store_, report_);
    const NodeIds ids = index_->take_ids();
    if (!no_edges) compare_ids(touched, ids);
    store_.write_ids(ids);
  }

 private:
  // What is said of a table that there is not.
  void refuse_idle_options() const {
    const bool features = !files_.features.empty() && !holds_arrays(files_.features), like = !options_.like.empty();
    const auto refuse = [&](bool idle, const char* option, const char* what) {
      if (idle) throw Error(what, option, "leave it out");
    };
    const char* no_features = "there is no text file of features";
    const bool missing = options_.missing != MissingValues::kRefuse,
               categorical = options_.categorical != Categorical::kRefuse, drop = !options_.drop_columns.empty();
    refuse(missing && !features, "--missing", no_features);
    refuse(categorical && !features, "--categorical", no_features);
    refuse(drop && !features, "--drop-columns", no_features);
    refuse(options_.features_header != HeaderLine::kAuto && !features, "--features-header", no_features);
    const char* as_there = "the encoding is that of --like";
    refuse(missing && like, "--missing", as_there);
    refuse(categorical && like, "--categorical", as_there);
    refuse(drop && like, "--drop-columns", as_there);
    const char* no_labels = "there is no text file of labels";
    refuse(!options_.label_column.empty() && !has_label_table(), "--label-column", no_labels);
    refuse(options_.labels_header != HeaderLine::kAuto && !has_label_table(), "--labels-header", no_labels);
    refuse(like && !features && !has_label_table(), "--like", "there is no text file of features or labels");
  }

  void look_at_tables() {
    look_at_label_file();
    if (!files_.split.empty() && !holds_arrays(files_.split))
      split_columns_ = choose_split_columns(files_.split, options_, edge_ids_);
    if (holds_arrays(files_.features)) {
      feature_array_.emplace(files_.features, store_.staging());
      tell_file(files_.features, options_.features, "an array, row i is node i");
    } else if (!files_.features.empty()) {
      const TableHead head = look_at_features(files_, options_);
      features_.emplace(head, choose_node_column(head, options_.id_column, edge_ids_), options_,
                        answers_among_features(head), encoding_like());
      tell_file(files_.features, options_.features, features_->describe());
    }
    if (label_array_)
      tell_file(files_.labels, options_.labels,
                features_ && features_->has_ids()
                    ? fmt::format("an array, row i is row i of {}", files_.features.filename().string())
                    : "an array, row i is node i");
    else if (!files_.labels.empty())
      tell_file(files_.labels, options_.labels, label_columns_.describe(label_head_));
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
    if (has_label_table() && fs::equivalent(files_.labels, files_.features)) {
      answers = label_columns_.classes;
    } else if (has_label_table() && label_head_.header && features.header) {
      for (const size_t c : label_columns_.classes) {
        if (parse_number(label_head_.names[c])) continue;  // pandas numbers the columns of every table from 0
        if (const size_t same = features.find(label_head_.names[c]); same != TableHead::kNone) answers.push_back(same);
      }
    }
    if (split_columns_ && fs::equivalent(files_.split, files_.features)) answers.push_back(split_columns_->role);
    std::sort(answers.begin(), answers.end());
    return answers;
  }

  // named: how the user named it; empty: it was found.
  void tell_file(const fs::path& file, const std::string& named, const std::string& what) {
    const char* option = file == files_.features ? "--features" : file == files_.labels ? "--labels" : "--split-file";
    std::string found;
    if (named.empty() && !files_.is_folder)
      found = fmt::format(" (found next to {}; {} none ignores it)", files_.edges.filename().string(), option);
    report_.lines.push_back(fmt::format("{}{}: {}", file.filename().string(), found, what));
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
    } else if (has_label_table() && !label_columns_.ids.exists()) {
      label_table_.emplace(label_head_, label_columns_, nullptr);
      index_ = NodeIndex::rows(check_node_count(label_table_->rows(), files_.labels.string()), files_.labels);
    } else {
      index_ = NodeIndex::open(fast);
    }
    if (has_label_table() && !label_table_) label_table_.emplace(label_head_, label_columns_, &*index_);
    edges_.emplace(read_edge_table(files_.edges, edge_shape_, *index_, {options_.memory, store_.staging()}));
  }
  bool has_label_table() const { return !files_.labels.empty() && !label_array_; }

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

  // What may have been meant otherwise.
  void tell_doubtful_labels(const ClassTable::Result& classes) {
    report_.add_line(classes.negative, "node has", "nodes have", "a negative label, which is read as no label");
    for (const std::string& name : classes.names)
      if (means_no_number(name))
        report_.lines.push_back(fmt::format(
            "label {} is read as the name of a class (if it means no label, leave the field empty)", show(name)));
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
    if (label_table_) return label_table_->settle(n, *index_, like_.labels.present() ? &known : nullptr);
    if (label_array_) return {read_labels(*label_array_, n, options_.task), {}};
    return {};
  }

  // A line of a list is one id, whatever is in it; or the first field of a table of commas, semicolons or tabs.
  std::string_view listed_id(std::string_view line, FieldSplitter& splitter, const LineReader& lines) const {
    const bool is_table = splitter.separator() != ' ' || line.starts_with('"');
    return index_->knows(line) || !is_table ? line : splitter.split(line, lines)[0];
  }

  std::vector<uint8_t> read_split_files(NodeId n) {
    if (holds_arrays(files_.split)) {
      tell_file(files_.split, options_.split_file, "an array of roles, " + rows_of_array(files_.split));
      return read_split(open_array(files_.split, store_.staging()), n);
    }
    if (split_columns_) {
      tell_file(files_.split, options_.split_file, split_columns_->describe());
      return read_split_table(*split_columns_, *index_);
    }
    if (files_.role_lists[0].empty()) return {};
    std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
    for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest}) {
      const fs::path& list = files_.role_lists[static_cast<size_t>(role)];
      if (list.empty()) continue;
      if (holds_arrays(list)) {
        read_role_array(list, role, split);
        continue;
      }
      LineReader lines(list);
      std::string_view line;
      while (lines.next_content(line)) {
        if (lines.line_number() == 1 && (is_node_name(line) || ends_in_id(line))) continue;
        FieldSplitter splitter(line);
        const NodeId node = index_->put(listed_id(line, splitter, lines), lines);
        if (node != kNoNode) assign_role(index_->final(node), role, lines.where(), split);
      }
      index_->refuse_unknown(list);
      tell_file(list, options_.split_file, "a list of node ids");
    }
    return split;
  }

  void read_role_array(const fs::path& file, Role role, std::vector<uint8_t>& split) {
    const Array array = open_array(file, store_.staging());
    const bool mask = array.dtype() == "|b1" || file.stem().string().ends_with("_mask");
    if (!mask && index_->has_names())
      throw Error("holds row numbers, but the nodes have ids of their own", file.string(),
                  fmt::format("give it as {}.txt, one id per line", file.stem().string()));
    tell_file(file, options_.split_file,
              (mask ? "a mask, " : "a list of nodes, ") +
                  rows_of_array(file, "give the split as train.txt, one id per line"));
    if (mask)
      assign_role_by_mask(array, role, split);
    else
      assign_role(array, role, split);
  }

  // Which node a row of an array is. Error where only the order in which edges name the nodes could tell.
  std::string rows_of_array(const fs::path& file, const std::string& hint = {}) const {
    if (!index_->has_names()) return "row i is node i";
    if (features_) return fmt::format("row i is row i of {}", files_.features.filename().string());
    if (!index_->has_texts()) return "row i is the node with the i-th smallest id";
    throw Error(fmt::format("has rows, but only {} says which nodes there are", files_.edges.filename().string()),
                file.string(),
                hint.empty() ? fmt::format("give it as {}.csv, with a column of ids", file.stem().string()) : hint);
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

// An error about a file that nobody named says how it came in.
void add_found_files(const Error& error, const TextFiles& files, const ImportOptions& options) {
  if (files.is_folder) return;
  const std::pair<const fs::path*, const char*> found[] = {
      {options.features.empty() ? &files.features : nullptr, "--features"},
      {options.labels.empty() ? &files.labels : nullptr, "--labels"},
      {options.split_file.empty() ? &files.split : nullptr, "--split-file"}};
  for (const auto& [file, option] : found) {
    if (file == nullptr || file->empty()) continue;
    const std::string name = file->filename().string();
    if ((error.problem() + error.where()).find(name) == std::string::npos) continue;
    throw Error(
        error.problem(), error.where(),
        fmt::format("{}{} was found next to {}: {} none ignores it", error.hint().empty() ? "" : error.hint() + "; ",
                    name, files.edges.filename().string(), option));
  }
}

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
      add_found_files(error, files, options);
      throw;
    }
  }
};

}  // namespace

std::unique_ptr<Reader> make_edges_reader() { return std::make_unique<EdgesReader>(); }

}  // namespace cgcn
