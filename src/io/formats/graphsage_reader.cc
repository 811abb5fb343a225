// “graphsage”: the files of GraphSAGE's data sets.
//   X-G.json          node-link JSON: nodes with id, val and test; links with source and target
//   X-feats.npy       features; none: each node is its own feature
//   X-id_map.json     id → row of the features; none: rows are in the order of the nodes
//   X-class_map.json  id → a class, or a list of 0/1
#include <algorithm>

#include "common/progress.h"
#include "io/formats/import_steps.h"
#include "io/node_index.h"
#include "io/numpy/array_features.h"
#include "io/serialised/graph_json.h"
#include "io/text/class_table.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

struct GraphSageFiles {
  fs::path graph, features, id_map, class_map;
};

constexpr std::string_view kGraphEnding = "-G.json";

// The source may be X-G.json, the prefix X, or a folder with one X-G.json in it. Empty if it is none of them.
fs::path find_graph(const fs::path& source) {
  std::error_code error;
  if (fs::is_regular_file(source, error))
    return source.filename().string().ends_with(kGraphEnding) ? source : fs::path();
  fs::path prefixed = source;
  prefixed += kGraphEnding;
  if (fs::is_regular_file(prefixed, error)) return prefixed;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(source, error))
    if (entry.path().filename().string().ends_with(kGraphEnding)) found.push_back(entry.path());
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    throw Error(
        fmt::format("holds several graphs: {} and {}", found[0].filename().string(), found[1].filename().string()),
        source.string(), "give the path of one of them");
  }
  return found.empty() ? fs::path() : found[0];
}

GraphSageFiles find_graphsage_files(const fs::path& source, const ImportOptions& options) {
  GraphSageFiles files;
  files.graph = find_graph(source);
  if (files.graph.empty()) throw Error("is not a file …-G.json and contains none", source.string());
  std::string prefix = files.graph.string();
  prefix.resize(prefix.size() - kGraphEnding.size());
  const auto existing = [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) ? path : fs::path();
  };
  files.features = options.features.empty() ? existing(prefix + "-feats.npy") : fs::path(options.features);
  files.class_map = options.labels.empty() ? existing(prefix + "-class_map.json") : fs::path(options.labels);
  files.id_map = existing(prefix + "-id_map.json");
  return files;
}

NodeRows read_id_map(const fs::path& path, NodeId n) {
  NodeRows nodes;
  std::vector<bool> used(n);
  JsonReader json(path);
  json.enter_object();
  for (std::string_view key; json.next_key(key);) {
    if (nodes.names.put(key) != nodes.rows.size()) json.fail(fmt::format("node {} is listed twice", show(key)));
    const double row = json.read_number();
    if (!(row >= 0 && row < n) || row != static_cast<double>(static_cast<NodeId>(row)))
      json.fail(
          fmt::format("node {} has row {}, but there are {} rows", show(nodes.names[nodes.names.size() - 1]), row, n));
    if (used[static_cast<size_t>(row)]) json.fail(fmt::format("two nodes have row {}", row));
    used[static_cast<size_t>(row)] = true;
    nodes.rows.push_back(static_cast<NodeId>(row));
  }
  json.finish();
  if (nodes.rows.size() != n)
    throw Error(fmt::format("names {} nodes, but there are {} rows of features", nodes.rows.size(), n), path.string());
  return nodes;
}

NodeId count_entries(const fs::path& path) {
  JsonReader json(path);
  uint64_t count = 0;
  json.enter_object();
  for (std::string_view key; json.next_key(key); ++count) json.skip();
  return check_node_count(count, path.string());
}

// Ids by row: nothing if they are the rows themselves, integers if all are such, else texts.
NodeIds ids_by_row(const NodeRows& nodes) {
  const size_t n = nodes.rows.size();
  std::vector<NodeId> name_of_row(n);
  for (NodeId name = 0; name < n; ++name) name_of_row[nodes.rows[name]] = name;
  std::vector<int64_t> integers;
  bool range = true;
  for (size_t row = 0; row < n; ++row) {
    const auto value = parse_integer(nodes.names[name_of_row[row]]);
    if (!value) break;
    integers.push_back(*value);
    range &= *value == static_cast<int64_t>(row);
  }
  if (integers.size() == n) return range ? NodeIds{} : NodeIds::integers(std::move(integers));
  std::vector<uint64_t> offsets{0};
  std::vector<char> text;
  for (const NodeId name : name_of_row) {
    const std::string_view id = nodes.names[name];
    text.insert(text.end(), id.begin(), id.end());
    offsets.push_back(text.size());
  }
  return NodeIds::strings(std::move(offsets), std::move(text));
}

class GraphSageReader final : public Reader {
 public:
  std::string name() const override { return "graphsage"; }
  std::string description() const override {
    return "X-G.json with X-feats.npy, X-id_map.json, X-class_map.json; give the file, the prefix X or the folder";
  }
  bool recognises(const fs::path& source) const override { return !find_graph(source).empty(); }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    const GraphSageFiles files = find_graphsage_files(source, options);
    report.name = files.graph.filename().string();
    report.name.resize(report.name.size() - kGraphEnding.size());
    std::optional<ArrayFeatures> features;
    if (!files.features.empty()) features.emplace(files.features, store.staging());
    NodeRows nodes;
    if (!files.id_map.empty()) {
      nodes = read_id_map(files.id_map, features ? features->rows() : count_entries(files.id_map));
    }
    GraphJson graph(files.graph, nodes, !files.id_map.empty());
    const NodeId n = check_node_count(nodes.rows.size(), files.graph.string());
    if (graph.num_listed() < n)
      report.lines.push_back(fmt::format("{} nodes of the id map are not in the graph: kept without edges",
                                         format_count(n - graph.num_listed())));
    EdgeList links = graph.take_links(report);
    SettledEdges edges(links, nullptr);
    import_graph(n, edges, options, store, report);
    if (features)
      features->import_into(store, n);
    else
      import_identity_features(n, store, report);
    ClassTable::Result classes;
    if (!files.class_map.empty())
      classes = read_class_map(files.class_map, n, [&](std::string_view id) { return nodes.find(id); });
    import_labels_and_split(std::move(classes), graph.take_split(n, report), n, options, store, report);
    store.write_ids(ids_by_row(nodes));
  }
};

}  // namespace

std::unique_ptr<Reader> make_graphsage_reader() { return std::make_unique<GraphSageReader>(); }

}  // namespace cgcn
