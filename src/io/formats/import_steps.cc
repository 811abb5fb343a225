#include "io/formats/import_steps.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "common/error.h"
#include "common/progress.h"
#include "graph/feature_encoding.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

// Shows progress of each pass over the edges, and lets Ctrl-C in.
class WatchedEdges final : public EdgeSource {
 public:
  explicit WatchedEdges(EdgeSource& edges) : edges_(edges) {}
  bool weighted() const override { return edges_.weighted(); }
  void visit(const std::function<void(const EdgeRun&)>& use) const override {
    Progress progress(total_ == 0 ? "reading edges" : "placing edges", total_);
    uint64_t seen = 0;
    edges_.visit([&](const EdgeRun& run) {
      throw_if_interrupted();
      use(run);
      seen += run.size;
      progress.advance(run.size);
    });
    total_ = seen;
  }
  void release() override { edges_.release(); }
  void spill() override { edges_.spill(); }

 private:
  EdgeSource& edges_;
  mutable uint64_t total_ = 0;
};

// The same labels with one class per node, if every node that the source lists (empty: all) has exactly one 1;
// otherwise nothing.
Labels one_class_each(const Labels& labels, NodeId num_nodes, const std::vector<bool>& listed) {
  std::vector<int32_t> classes(num_nodes, -1);
  for (NodeId v = 0; v < num_nodes; ++v) {
    const std::span<const uint8_t> bits = labels.bit_row(v);
    for (size_t i = 0; i < bits.size(); ++i) {
      if (bits[i] == 0) continue;
      if (classes[v] >= 0 || !std::has_single_bit(bits[i])) return {};
      classes[v] = static_cast<int32_t>(8 * i) + std::countr_zero(bits[i]);
    }
    if (classes[v] < 0 && (listed.empty() || listed[v])) return {};
  }
  return Labels::single(std::move(classes), labels.num_classes());
}

void count_labelled(const Labels& labels, NodeId num_nodes, ImportReport& report) {
  if (!labels.present() || labels.multi_label()) return;
  uint64_t labelled = 0;
  for (NodeId v = 0; v < num_nodes; ++v) labelled += labels.known(v) ? 1 : 0;
  if (labelled < num_nodes)
    report.lines.push_back(fmt::format("{} of {} nodes have a label", format_count(labelled), format_count(num_nodes)));
}

// What may have been meant otherwise.
// Classes a, b and a;b may be meant as two.
void tell_lists(const std::vector<std::string>& names, ImportReport& report) {
  for (const std::string& name : names) {
    const size_t end = name.find_first_of(ClassTable::kListSeparators);
    if (end == std::string::npos || std::find(names.begin(), names.end(), name.substr(0, end)) == names.end()) continue;
    report.lines.push_back(
        fmt::format("label {} is read as the name of a class (--multi-label reads a list of classes)", show(name)));
    return;
  }
}

void tell_doubtful_labels(const ClassTable::Result& classes, ImportReport& report) {
  const Labels& labels = classes.labels;
  report.add_line(classes.negative, "node has", "nodes have", "a negative label, which is read as no label");
  for (const std::string& name : classes.names)
    if (means_no_number(name))
      report.lines.push_back(fmt::format(
          "label {} is read as the name of a class (if it means no label, leave the field empty)", show(name)));
  if (!labels.present() || labels.multi_label() || labels.regression()) return;
  const bool numbers = std::all_of(classes.names.begin(), classes.names.end(), [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  });
  if (numbers && !classes.names.empty() && classes.names[0] != "0")
    report.lines.push_back(fmt::format("labels are numbers without 0: the {} that occur are the classes ({})",
                                       format_count(classes.names.size()), list_some(classes.names)));
  tell_lists(classes.names, report);
  std::vector<bool> occurs(labels.num_classes(), false);
  for (const int32_t label : labels.classes())
    if (label >= 0) occurs[static_cast<size_t>(label)] = true;
  std::vector<std::string> empty;
  for (uint32_t c = 0; c < occurs.size(); ++c)
    if (!occurs[c]) empty.push_back(c < classes.names.size() ? classes.names[c] : std::to_string(c));
  if (!empty.empty())
    report.lines.push_back(fmt::format("{} of {} classes {} no node: {}", format_count(empty.size()),
                                       format_count(occurs.size()), empty.size() == 1 ? "has" : "have",
                                       list_some(empty)));
}

void write_offsets(std::span<const uint32_t> degrees, StoreWriter& store) {
  constexpr size_t kRows = size_t{1} << 16;
  ArrayWriter writer = store.begin_array<EdgeOffset>("adjacency_offsets");
  std::vector<EdgeOffset> offsets{0};
  EdgeOffset end = 0;
  for (const uint32_t degree : degrees) {
    if (offsets.size() == kRows) {
      writer.append(std::span<const EdgeOffset>(offsets));
      offsets.clear();
    }
    offsets.push_back(end += degree);
  }
  writer.append(std::span<const EdgeOffset>(offsets));
  store.end_array("adjacency_offsets", writer);
}

}  // namespace

NodeId check_node_count(uint64_t n, const std::string& where) {
  if (n == 0) throw Error("the graph has no nodes", where);
  if (n >= kNoNode) throw Error(fmt::format("{} nodes are more than a graph can have ({})", n, kNoNode - 1), where);
  return static_cast<NodeId>(n);
}

void check_plausible(uint64_t n, uint64_t entries, const std::string& where, const std::string& hint) {
  if (n <= most_plausible_rows(entries)) return;
  throw Error(fmt::format("speaks of {} nodes, but there are {} edges, and nothing lists the nodes", format_count(n),
                          format_count(entries)),
              where, hint);
}

std::vector<bool> import_graph(NodeId num_nodes, EdgeSource& edges, const ImportOptions& options, StoreWriter& store,
                               ImportReport& report) {
  const BuildOptions build{
      .directed = options.directed, .keep_self_loops = options.keep_self_loops, .memory = options.memory};
  WatchedEdges watched(edges);
  BuildCounts counts;
  std::vector<bool> touched(num_nodes, false);
  ArrayWriter targets = store.begin_array<NodeId>("adjacency_targets");
  std::unique_ptr<ArrayWriter> weights;
  if (edges.weighted()) weights.reset(new ArrayWriter(store.begin_array<float>("adjacency_weights")));
  const BuiltRows rows = build_rows(num_nodes, watched, build, &counts, [&](auto row_targets, auto row_weights) {
    targets.append(row_targets);
    if (weights) weights->append(row_weights);
    if (options.directed)
      for (const NodeId v : row_targets) touched[v] = true;
  });
  for (NodeId v = 0; v < num_nodes; ++v)
    if (rows.degrees[v] > 0) touched[v] = true;
  store.end_array("adjacency_targets", targets);
  if (weights) store.end_array("adjacency_weights", *weights);
  write_offsets(rows.degrees, store);
  store.declare_graph(num_nodes, rows.entries, rows.num_edges(options.directed), options.directed, rows.weighted);
  report.add_counts(counts, build);
  return touched;
}

FeatureRows::FeatureRows(StoreWriter& store, NodeId num_nodes, uint64_t columns, bool half, std::string where)
    : store_(store),
      writer_(half ? store.begin_array<Half>("features", columns) : store.begin_array<float>("features", columns)),
      num_nodes_(num_nodes),
      columns_(static_cast<uint32_t>(columns)),
      half_(half),
      where_(std::move(where)) {
  if (columns == 0 || columns >= UINT32_MAX) throw Error(fmt::format("has {} feature columns", columns), where_);
}

void FeatureRows::append(std::span<const float> values) {
  CGCN_CHECK(values.size() % columns_ == 0);
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw Error(fmt::format("row {}, column {} is {} as float32, but features must be finite numbers",
                              rows_ + i / columns_, i % columns_, values[i]),
                  where_, "replace such values before importing, for example with numpy.nan_to_num");
  rows_ += values.size() / columns_;
  if (!half_) return writer_.append(values);
  halves_.reserve_discarding(values.size());
  for (size_t i = 0; i < values.size(); ++i) halves_[i] = float_to_half(values[i]);
  writer_.append(std::span<const Half>(halves_.data(), values.size()));
}

void FeatureRows::finish() {
  if (rows_ != num_nodes_)
    throw Error(fmt::format("holds features of {} nodes, but the graph has {}", rows_, num_nodes_), where_);
  store_.end_array("features", writer_);
  store_.declare_features(half_ ? FeatureMatrix::Kind::kDense16 : FeatureMatrix::Kind::kDense32, columns_);
}

void import_identity_features(NodeId num_nodes, StoreWriter& store, ImportReport& report) {
  store.write_features(FeatureMatrix::identity(num_nodes));
  report.lines.emplace_back("no features in the source: each node is its own feature");
}

void import_features(const Array& features, NodeId num_nodes, StoreWriter& store) {
  features.require_numbers("features");
  if (features.shape().size() > 2) features.require_dimensions(2, "features");
  require_rows(features, num_nodes, "features");
  FeatureRows rows(store, num_nodes, features.columns(), features.is_half(), features.where());
  Progress progress("reading features", features.rows());
  for_each_row_block<float>(features, [&](uint64_t, std::span<const float> block) {
    rows.append(block);
    progress.advance(block.size() / features.columns());
  });
  rows.finish();
}

std::array<double, 3> parse_split_shares(const std::string& text) {
  std::array<double, 3> shares{};
  const char* at = text.data();
  const char* end = at + text.size();
  for (size_t i = 0; i < 3; ++i) {
    const auto [rest, status] = std::from_chars(at, end, shares[i]);
    const bool separated = i == 2 ? rest == end : rest != end && *rest == '/';
    if (status != std::errc() || !separated || !(shares[i] >= 0) || !std::isfinite(shares[i]))
      throw std::invalid_argument(fmt::format("'{}' is not three shares such as 60/20/20", text));
    at = rest + 1;
  }
  if (!(shares[0] + shares[1] + shares[2] > 0)) throw std::invalid_argument("the shares are all 0");
  return shares;
}

namespace {

// What shares mean that are neither percentages nor parts of 1; empty if they are.
std::string explain_shares(const std::array<double, 3>& shares) {
  const double sum = shares[0] + shares[1] + shares[2];
  if (std::abs(sum - 100) < 1e-3 || std::abs(sum - 1) < 1e-5) return {};
  return fmt::format(": {:.1f} %, {:.1f} % and {:.1f} % of the labelled nodes, since the shares add up to {:g}",
                     100 * shares[0] / sum, 100 * shares[1] / sum, 100 * shares[2] / sum, sum);
}

}  // namespace

std::vector<uint8_t> import_labels_and_split(ClassTable::Result classes, std::vector<uint8_t> split, NodeId num_nodes,
                                             const ImportOptions& options, StoreWriter& store, ImportReport& report) {
  Labels& labels = classes.labels;
  const std::vector<bool>& listed = classes.listed;
  if (options.task == Task::kRegression && !labels.regression())
    throw Error(labels.present() ? "this format's labels are classes" : "the source has no labels", "--task",
                "labels of numbers in a CSV file or an array: --format edges or plain");
  if (options.multi_label && !labels.multi_label())
    throw Error(labels.present() ? "the source has one class per node, not rows of 0 and 1 or lists"
                                 : "the source has no labels",
                "--multi-label", "leave it out");
  if (labels.multi_label() && !options.multi_label)
    if (Labels single = one_class_each(labels, num_nodes, listed); single.present()) {
      labels = std::move(single);
      report.lines.emplace_back(
          "every row of labels has exactly one 1: read as one class per node (--multi-label keeps them multi-label)");
    }
  store.write_labels(labels);
  store.write_class_names(classes.names);
  tell_doubtful_labels(classes, report);
  count_labelled(labels, num_nodes, report);
  if (!options.split.empty()) {
    const std::array<double, 3> shares = parse_split_shares(options.split);
    report.lines.push_back(fmt::format("split {} drawn with seed {}{}{}", options.split, options.seed,
                                       split.empty() ? "" : " in place of the source's own", explain_shares(shares)));
    const SharedArray<uint8_t> drawn = random_split(labels, num_nodes, shares, options.seed, listed);
    store.write_split(drawn);
    return {drawn.begin(), drawn.end()};
  }
  if (split.empty()) report.lines.emplace_back("no split in the source (--split 60/20/20 draws one)");
  uint64_t unlabelled = 0;
  constexpr auto kNoRole = static_cast<uint8_t>(Role::kNone);
  for (NodeId v = 0; labels.present() && v < split.size(); ++v) {
    if (split[v] == kNoRole || (labels.multi_label() ? listed.empty() || listed[v] : labels.known(v))) continue;
    ++unlabelled;
    if (labels.multi_label()) split[v] = kNoRole;  // “no class at all” is a label there, and nobody gave it
  }
  report.add_line(unlabelled, "node of the split has", "nodes of the split have",
                  labels.multi_label() ? "no label, and no role therefore" : "no label");
  store.write_split(split);
  return split;
}

void refuse_file_options(const ImportOptions& options, const std::string& format, bool split_too) {
  const auto refuse = [&](const std::string& value, const char* option) {
    if (!value.empty())
      throw Error(fmt::format("is for plain files; the {} format has its own", format), option, "leave it out");
  };
  refuse(options.features, "--features");
  refuse(options.labels, "--labels");
  if (split_too) refuse(options.split_file, "--split-file");
}

fs::path find_file(const fs::path& folder, std::initializer_list<const char*> names) {
  std::error_code error;
  for (const char* name : names)
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  return {};
}

}  // namespace cgcn
