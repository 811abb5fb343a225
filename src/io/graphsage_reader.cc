// “graphsage”: the files of GraphSAGE's data sets.
//   X-G.json          node-link JSON: nodes with id, val and test; links with source and target
//   X-feats.npy       features; none: each node is its own feature
//   X-id_map.json     id → row of the features; none: rows are in the order of the nodes
//   X-class_map.json  id → a class, or a list of 0/1
//
// networkx 1 wrote the ends of a link as positions in the list of nodes, later versions write ids. Texts are ids;
// numbers are ids where every one of them is some node's, and positions otherwise.
#include <algorithm>

#include "common/progress.h"
#include "io/class_table.h"
#include "io/fields.h"
#include "io/import_steps.h"
#include "io/json_reader.h"
#include "io/node_index.h"

namespace cgcn {
namespace {

struct GraphSageFiles {
  fs::path graph, features, id_map, class_map;
};

constexpr std::string_view kGraphEnding = "-G.json";

// The source may be X-G.json, the prefix X, or a folder with one X-G.json in it. Empty where it is none of them.
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
  if (files.graph.empty()) throw Error("is not, and does not hold, a file …-G.json", source.string());
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

// Ids and the rows that they stand for.
struct NodeRows {
  TextTable names;
  std::vector<NodeId> rows;  // of each name

  NodeId find(std::string_view id) const {
    const NodeId name = names.find(id);
    return name == kNoNode ? kNoNode : rows[name];
  }
};

// Ids that are integers, for links: a plain array where they are dense, a table where not.
class IntegerRows {
 public:
  explicit IntegerRows(const NodeRows& nodes) {
    std::vector<std::pair<int64_t, NodeId>> found;
    for (NodeId name = 0; name < nodes.names.size(); ++name)
      if (const auto value = parse_integer(nodes.names[name])) found.emplace_back(*value, nodes.rows[name]);
    const uint64_t limit = 4 * uint64_t{nodes.names.size()} + 1024;
    for (const auto& [value, row] : found) {
      if (value >= 0 && static_cast<uint64_t>(value) < limit) {
        if (static_cast<size_t>(value) >= dense_.size()) dense_.resize(static_cast<size_t>(value) + 1, kNoNode);
        dense_[static_cast<size_t>(value)] = row;
      } else {
        table_.put(value);
        table_rows_.push_back(row);
      }
    }
    size_ = found.size();
  }
  size_t size() const { return size_; }
  NodeId find(int64_t id) const {
    if (static_cast<uint64_t>(id) < dense_.size()) return dense_[static_cast<size_t>(id)];
    const NodeId place = table_.find(id);
    return place == kNoNode ? kNoNode : table_rows_[place];
  }

 private:
  std::vector<NodeId> dense_, table_rows_;
  IntegerTable table_;
  size_t size_ = 0;
};

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

// The list of nodes and the links of X-G.json, which may come in either order.
class GraphJson {
 public:
  struct WrongReading {};

  // `nodes` holds the ids of an id map, or is empty and gets them in the order of the list.
  GraphJson(const fs::path& path, NodeRows& nodes, bool has_id_map)
      : json_(path), nodes_(nodes), has_id_map_(has_id_map) {
    bool has_nodes = false, has_links = false;
    json_.enter_object();
    for (std::string_view key; json_.next_key(key);) {
      if (key == "nodes") {
        read_nodes();
        has_nodes = true;
      } else if (key == "links" || key == "edges") {
        links_ = json_.mark();
        has_links = true;
        if (has_nodes)
          edges_.emplace(read_links_either_way());
        else
          json_.skip();
      } else {
        json_.skip();
      }
    }
    json_.finish();
    if (!has_nodes) throw Error("has no list of nodes", path.string());
    if (!has_links) throw Error("has no list of links", path.string());
  }

  EdgeList take_links(ImportReport& report) {
    if (!edges_) {  // they came before the nodes
      json_.return_to(links_);
      edges_.emplace(read_links_either_way());
    }
    if (!note_.empty()) report.lines.push_back(note_);
    return std::move(*edges_);
  }

  std::vector<uint8_t> take_split(NodeId n, ImportReport& report) {
    if (flagged_ == 0) return {};
    std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
    for (size_t i = 0; i < roles_.size(); ++i) split[row_of_position_[i]] = roles_[i];
    if (flagged_ < n)
      report.lines.push_back(
          fmt::format("{} nodes have no val and test flags: no part of the split", format_count(n - flagged_)));
    return split;
  }
  NodeId num_listed() const { return static_cast<NodeId>(row_of_position_.size()); }

 private:
  void read_nodes() {
    if (!row_of_position_.empty()) json_.fail("a second list of nodes");
    std::vector<bool> seen;
    json_.enter_array();
    while (json_.next_element()) {
      bool has_id = false, validation = false, test = false, flagged = false;
      NodeId row = kNoNode;
      json_.enter_object();
      for (std::string_view key; json_.next_key(key);) {
        if (key == "id") {
          row = find_or_add(json_.read_word());
          has_id = true;
        } else if (key == "val" || key == "test") {
          (key == "val" ? validation : test) = json_.read_flag();
          flagged = true;
        } else {
          json_.skip();
        }
      }
      if (!has_id) json_.fail("a node without an id");
      if (row >= seen.size()) seen.resize(std::max<size_t>(size_t{row} + 1, 2 * seen.size()));
      if (seen[row]) json_.fail("a node is listed twice");
      seen[row] = true;
      row_of_position_.push_back(row);
      roles_.push_back(static_cast<uint8_t>(!flagged     ? Role::kNone
                                            : test       ? Role::kTest
                                            : validation ? Role::kValidation
                                                         : Role::kTrain));
      if (flagged) ++flagged_;
    }
  }

  NodeId find_or_add(std::string_view id) {
    if (!has_id_map_) {
      if (nodes_.rows.size() + 2 >= kNoNode) json_.fail("more nodes than a graph can have");
      const NodeId name = nodes_.names.put(id);
      if (name == nodes_.rows.size()) nodes_.rows.push_back(name);
      return name;
    }
    const NodeId row = nodes_.find(id);
    if (row == kNoNode) json_.fail(fmt::format("node {} is not in the id map", show(id)));
    return row;
  }

  EdgeList read_links_either_way() {
    const IntegerRows by_id(nodes_);
    bool same = by_id.size() == row_of_position_.size();
    for (size_t i = 0; i < row_of_position_.size() && same; ++i)
      same = by_id.find(static_cast<int64_t>(i)) == row_of_position_[i];
    if (by_id.size() > 0 && !same) {
      try {
        EdgeList edges = read_links_as(&by_id);
        if (largest_end_ >= 0 && static_cast<uint64_t>(largest_end_) < row_of_position_.size())
          note_ = "links name nodes by id (they could also be read as positions)";
        return edges;
      } catch (const WrongReading&) {
        json_.return_to(links_);
      }
    }
    EdgeList edges = read_links_as(nullptr);
    if (largest_end_ >= 0 && !same) note_ = "links name nodes by position, as networkx 1 wrote them";
    return edges;
  }

  // by_id: numbers are ids; null: positions.
  EdgeList read_links_as(const IntegerRows* by_id) {
    largest_end_ = -1;
    const bool weighted = first_link_has_weight();
    json_.return_to(links_);
    EdgeList edges(weighted);
    json_.enter_array();
    while (json_.next_element()) {
      NodeId from = kNoNode, to = kNoNode;
      float weight = 1;
      json_.enter_object();
      for (std::string_view key; json_.next_key(key);) {
        if (key == "source") {
          from = read_end(by_id);
        } else if (key == "target") {
          to = read_end(by_id);
        } else if (key == "weight") {
          if (!weighted) json_.fail("some links have weights, but the first has none");
          weight = static_cast<float>(json_.read_number());
          if (!(weight >= 0) || weight > 3.4e38f) json_.fail(fmt::format("a link's weight is {}", weight));
        } else {
          json_.skip();
        }
      }
      if (from == kNoNode || to == kNoNode) json_.fail("a link without source or target");
      edges.add(from, to, weight);
    }
    return edges;
  }

  bool first_link_has_weight() {
    json_.enter_array();
    bool found = false;
    if (!json_.next_element()) return false;
    json_.enter_object();
    for (std::string_view key; json_.next_key(key); json_.skip()) found |= key == "weight";
    return found;
  }

  NodeId read_end(const IntegerRows* by_id) {
    if (json_.peek() == JsonReader::Kind::kText) {
      const std::string_view id = json_.read_text();
      const NodeId row = nodes_.find(id);
      if (row == kNoNode) json_.fail(fmt::format("a link names node {}, which is not listed", show(id)));
      return row;
    }
    const std::string_view word = json_.read_word();
    const char* at = word.data();
    uint64_t digits = 0;
    int64_t value = 0;
    if (read_digits(at, word.data() + word.size(), digits) && at == word.data() + word.size()) {
      value = static_cast<int64_t>(digits);
    } else {
      const std::optional<int64_t> parsed = parse_integer(word);
      if (!parsed) json_.fail(fmt::format("a link's end is neither a text nor a whole number: {}", show(word)));
      value = *parsed;
    }
    largest_end_ = std::max(largest_end_, value);
    if (by_id != nullptr) {
      const NodeId row = by_id->find(value);
      if (row == kNoNode) throw WrongReading{};
      return row;
    }
    if (value < 0 || static_cast<uint64_t>(value) >= row_of_position_.size())
      json_.fail(fmt::format("a link's end {} is neither a node's id nor a position in the list of {} nodes", value,
                             row_of_position_.size()));
    return row_of_position_[static_cast<size_t>(value)];
  }

  JsonReader json_;
  NodeRows& nodes_;
  bool has_id_map_;
  JsonReader::Mark links_;
  std::optional<EdgeList> edges_;
  std::string note_;
  std::vector<NodeId> row_of_position_;
  std::vector<uint8_t> roles_;
  uint64_t flagged_ = 0;
  int64_t largest_end_ = -1;  // among numbers
};

// Ids by row: nothing where they are the rows themselves, integers where all are such, else texts.
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
    std::optional<Array> features;
    if (!files.features.empty()) features = Array::open_npy(files.features);
    NodeRows nodes;
    if (!files.id_map.empty()) {
      const NodeId rows =
          features ? check_node_count(features->rows(), features->where()) : count_entries(files.id_map);
      nodes = read_id_map(files.id_map, rows);
    }
    GraphJson graph(files.graph, nodes, !files.id_map.empty());
    const NodeId n = check_node_count(nodes.rows.size(), files.graph.string());
    if (graph.num_listed() < n)
      report.lines.push_back(fmt::format("{} nodes of the id map are not in the graph: kept without links",
                                         format_count(n - graph.num_listed())));
    EdgeList links = graph.take_links(report);
    SettledEdges edges(links, nullptr);
    import_graph(n, edges, options, store, report);
    if (features)
      import_features(*features, n, store);
    else
      import_identity_features(n, store, report);
    ClassTable::Result classes;
    if (!files.class_map.empty())
      classes = read_class_map(files.class_map, n, [&](std::string_view id) { return nodes.find(id); });
    store.write_class_names(classes.names);
    import_labels_and_split(classes.labels, graph.take_split(n, report), n, options, store, report);
    store.write_ids(ids_by_row(nodes));
  }
};

}  // namespace

std::unique_ptr<Reader> make_graphsage_reader() { return std::make_unique<GraphSageReader>(); }

}  // namespace cgcn
