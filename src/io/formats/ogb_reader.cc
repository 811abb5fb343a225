// “ogb”: the raw files of an Open Graph Benchmark node set, as its archives hold them, plain or gzip.
//   raw/edge.csv.gz            from,to            raw/num-node-list.csv.gz   the number of nodes
//   raw/node-feat.csv.gz       a row a node       raw/num-edge-list.csv.gz   the number of edges
//   raw/node-label.csv.gz      one class per node, or a column of 0/1 for each task
//   split/NAME/{train,valid,test}.csv.gz          ids
#include <algorithm>

#include "common/progress.h"
#include "io/formats/import_steps.h"
#include "io/text/edge_table.h"
#include "io/text/feature_table.h"
#include "io/text/label_table.h"

namespace cgcn {
namespace {

fs::path raw_folder(const fs::path& source) {
  std::error_code error;
  for (const fs::path& folder : {source, source / "raw"})
    if (!find_plain_or_gzip(folder / "edge.csv").empty() && !find_plain_or_gzip(folder / "num-node-list.csv").empty())
      return folder;
  return {};
}

// The one number that num-node-list and num-edge-list hold for a set of one graph.
uint64_t read_count(const fs::path& path) {
  LineReader lines(path);
  std::string_view line;
  if (!lines.next_content(line)) throw Error("is empty", path.string());
  const std::optional<int64_t> count = parse_integer(line);
  if (!count || *count < 0) lines.fail(fmt::format("is not a count: {}", show(line)));
  if (lines.next_content(line))
    lines.fail("lists several graphs", "only sets of one graph, those of node prediction, can be imported");
  return static_cast<uint64_t>(*count);
}

// split/NAME next to raw/ or in it; sets have one. Empty if there is none.
fs::path split_folder(const fs::path& raw) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const fs::path& folder : {raw / "split", raw / "../split"}) {
    if (!fs::is_directory(folder, error)) continue;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (!find_plain_or_gzip(entry.path() / "train.csv").empty()) found.push_back(entry.path());
  }
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    throw Error(
        fmt::format("holds several splits: {} and {}", found[0].filename().string(), found[1].filename().string()),
        found[0].parent_path().lexically_normal().string(), "keep the folder of the one you want");
  }
  return found.empty() ? fs::path() : found[0];
}

std::vector<uint8_t> read_split_files(const fs::path& folder, NodeId n) {
  if (folder.empty()) return {};
  std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
  constexpr const char* kNames[] = {"train.csv", "valid.csv", "test.csv"};
  for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest}) {
    const fs::path list = find_plain_or_gzip(folder / kNames[static_cast<size_t>(role)]);
    if (list.empty())
      throw Error(fmt::format("{} is missing", kNames[static_cast<size_t>(role)]), folder.string(),
                  "download it again");
    LineReader lines(list);
    std::string_view line;
    while (lines.next_content(line)) {
      const std::optional<int64_t> id = parse_integer(line);
      if (!id) lines.fail(fmt::format("is not a node id: {}", show(line)));
      assign_role(*id, role, lines.where(), split);
    }
  }
  return split;
}

class OgbReader final : public Reader {
 public:
  std::string name() const override { return "ogb"; }
  std::string description() const override {
    return "a folder of OGB's raw files: edge.csv.gz, num-node-list.csv.gz, node-feat.csv.gz, node-label.csv.gz, split";
  }
  bool recognises(const fs::path& source) const override { return !raw_folder(source).empty(); }
  bool reads_tables() const override { return true; }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    options.refuse_table_options(name(), /*encoding_too=*/false);
    const fs::path raw = raw_folder(source);
    if (raw.empty()) throw Error("holds no edge.csv.gz and num-node-list.csv.gz", source.string());
    const fs::path counted_in = find_plain_or_gzip(raw / "num-node-list.csv");
    const NodeId n = check_node_count(read_count(counted_in), counted_in.string());
    // What lists every node comes first: only then is the declared number of nodes worth memory.
    std::optional<FeatureTable> features = read_features(raw, n, options, store, report);
    ClassTable::Result classes = read_classes(raw, n);
    read_edges(raw, NodeIndex::rows(n, counted_in), options, store, report);
    const std::vector<uint8_t> split =
        import_labels_and_split(std::move(classes), read_split_files(split_folder(raw), n), n, options, store, report);
    if (features) features->finish(split, store, report);
    if (!find_plain_or_gzip(raw / "edge-feat.csv").empty()) report.lines.emplace_back("edge features are not read");
  }

 private:
  static void read_edges(const fs::path& raw, NodeIndex index, const ImportOptions& options, StoreWriter& store,
                         ImportReport& report) {
    const fs::path path = find_plain_or_gzip(raw / "edge.csv"),
                   counted_in = find_plain_or_gzip(raw / "num-edge-list.csv");
    EdgeTableShape shape = look_at_edges(path);
    if (shape.columns != 2) throw Error(fmt::format("has {} columns, expected 2", shape.columns), path.string());
    EdgeList edges = read_edge_table(path, shape, index, {options.memory, store.staging()});
    if (!counted_in.empty())
      if (const uint64_t declared = read_count(counted_in); declared != edges.size())
        throw Error(fmt::format("holds {} edges, but {} says {}", format_count(edges.size()),
                                counted_in.filename().string(), format_count(declared)),
                    path.string(), "copy or download it again");
    // Without features and labels nothing but the edges speaks for the declared number of nodes.
    if (find_plain_or_gzip(raw / "node-feat.csv").empty() && find_plain_or_gzip(raw / "node-label.csv").empty())
      check_plausible(index.size(), edges.size(), find_plain_or_gzip(raw / "num-node-list.csv").string(),
                      "copy or download it again");
    import_graph(index.size(), edges, options, store, report);
  }

  static std::optional<FeatureTable> read_features(const fs::path& raw, NodeId n, const ImportOptions& options,
                                                   StoreWriter& store, ImportReport& report) {
    const fs::path path = find_plain_or_gzip(raw / "node-feat.csv");
    if (path.empty()) {
      import_identity_features(n, store, report);
      return std::nullopt;
    }
    // Rows are nodes here, always: what looks like a column of ids is one like the others.
    std::optional<FeatureTable> table;
    table.emplace(look_at_table(path, HeaderLine::kNo, TableKind::kFeatures), NodeColumn(), options);
    const NodeId rows = table->read(nullptr, store);
    if (rows != n) throw Error(fmt::format("holds features of {} nodes, but the graph has {}", rows, n), path.string());
    return table;
  }

  static ClassTable::Result read_classes(const fs::path& raw, NodeId n) {
    const fs::path path = find_plain_or_gzip(raw / "node-label.csv");
    if (path.empty()) return {};
    const TableHead head = look_at_table(path, HeaderLine::kNo, TableKind::kClasses);
    LabelColumns columns;
    for (size_t c = 0; c < head.width; ++c) columns.classes.push_back(c);
    return LabelTable(head, columns, nullptr).settle(n, NodeIndex::rows(n, path));
  }
};

}  // namespace

std::unique_ptr<Reader> make_ogb_reader() { return std::make_unique<OgbReader>(); }

}  // namespace cgcn
