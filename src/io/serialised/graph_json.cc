#include "io/serialised/graph_json.h"

#include <algorithm>

#include "common/error.h"
#include "common/progress.h"
#include "io/text/fields.h"

namespace cgcn {

// Ids that are integers, for edges: a plain array if they are dense, else a table.
class GraphJson::IntegerRows {
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

GraphJson::GraphJson(const fs::path& path, NodeRows& nodes, bool has_id_map)
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
  if (!has_links) throw Error("has no list of edges (\"links\" or \"edges\")", path.string());
}

EdgeList GraphJson::take_links(ImportReport& report) {
  if (!edges_) {  // they came before the nodes
    json_.return_to(links_);
    edges_.emplace(read_links_either_way());
  }
  if (!note_.empty()) report.lines.push_back(note_);
  return std::move(*edges_);
}

std::vector<uint8_t> GraphJson::take_split(NodeId n, ImportReport& report) {
  if (flagged_ == 0) return {};
  std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
  for (size_t i = 0; i < roles_.size(); ++i) split[row_of_position_[i]] = roles_[i];
  if (flagged_ < n)
    report.lines.push_back(
        fmt::format("{} nodes have no val and test flags: no part of the split", format_count(n - flagged_)));
  return split;
}

void GraphJson::read_nodes() {
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

NodeId GraphJson::find_or_add(std::string_view id) {
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

EdgeList GraphJson::read_links_either_way() {
  const IntegerRows by_id(nodes_);
  bool same = by_id.size() == row_of_position_.size();
  for (size_t i = 0; i < row_of_position_.size() && same; ++i)
    same = by_id.find(static_cast<int64_t>(i)) == row_of_position_[i];
  if (by_id.size() > 0 && !same) {
    try {
      EdgeList edges = read_links_as(&by_id);
      if (largest_end_ >= 0 && static_cast<uint64_t>(largest_end_) < row_of_position_.size())
        note_ = "edges name nodes by id (they could also be read as positions)";
      return edges;
    } catch (const WrongReading&) {
      json_.return_to(links_);
    }
  }
  EdgeList edges = read_links_as(nullptr);
  if (largest_end_ >= 0 && !same) note_ = "edges name nodes by position, as networkx 1 wrote them";
  return edges;
}

EdgeList GraphJson::read_links_as(const IntegerRows* by_id) {
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
        if (!weighted) json_.fail("some edges have weights, but the first has none");
        weight = static_cast<float>(json_.read_number());
        if (!(weight >= 0) || weight > 3.4e38f) json_.fail(fmt::format("an edge's weight is {}", weight));
      } else {
        json_.skip();
      }
    }
    if (from == kNoNode || to == kNoNode) json_.fail("an edge without source or target");
    edges.add(from, to, weight);
  }
  return edges;
}

bool GraphJson::first_link_has_weight() {
  json_.enter_array();
  bool found = false;
  if (!json_.next_element()) return false;
  json_.enter_object();
  for (std::string_view key; json_.next_key(key); json_.skip()) found |= key == "weight";
  return found;
}

NodeId GraphJson::read_end(const IntegerRows* by_id) {
  if (json_.peek() == JsonReader::Kind::kText) {
    const std::string_view id = json_.read_text();
    const NodeId row = nodes_.find(id);
    if (row == kNoNode) json_.fail(fmt::format("an edge names node {}, which is not listed", show(id)));
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
    if (!parsed) json_.fail(fmt::format("an edge's end is neither text nor a whole number: {}", show(word)));
    value = *parsed;
  }
  largest_end_ = std::max(largest_end_, value);
  if (by_id != nullptr) {
    const NodeId row = by_id->find(value);
    if (row == kNoNode) throw WrongReading{};
    return row;
  }
  if (value < 0 || static_cast<uint64_t>(value) >= row_of_position_.size())
    json_.fail(fmt::format("an edge's end {} is neither a node id nor a position in the list of {} nodes", value,
                           row_of_position_.size()));
  return row_of_position_[static_cast<size_t>(value)];
}

}  // namespace cgcn
