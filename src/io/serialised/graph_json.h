// X-G.json of GraphSAGE: node-edge JSON, as networkx writes it.
//
// networkx 1 wrote the ends of an edge as positions in the list of nodes, later versions write ids. Texts are ids;
// numbers are ids if every one of them is some node's, and positions otherwise.
#pragma once

#include <optional>

#include "graph/graph_builder.h"
#include "io/reader.h"
#include "io/serialised/json_reader.h"
#include "io/text/name_table.h"

namespace cgcn {

// Ids and the rows that they stand for.
struct NodeRows {
  TextTable names;
  std::vector<NodeId> rows;  // of each name

  NodeId find(std::string_view id) const {
    const NodeId name = names.find(id);
    return name == kNoNode ? kNoNode : rows[name];
  }
};

// The list of nodes and the edges, which may come in either order.
class GraphJson {
 public:
  // `nodes` holds the ids of an id map, or is empty and gets them in the order of the list.
  GraphJson(const fs::path& path, NodeRows& nodes, bool has_id_map);

  EdgeList take_links(ImportReport& report);
  // From the val and test flags; empty if no node has them.
  std::vector<uint8_t> take_split(NodeId n, ImportReport& report);
  NodeId num_listed() const { return static_cast<NodeId>(row_of_position_.size()); }

 private:
  class IntegerRows;
  struct WrongReading {};
  void read_nodes();
  NodeId find_or_add(std::string_view id);
  EdgeList read_links_either_way();
  EdgeList read_links_as(const IntegerRows* by_id);  // by_id: numbers are ids; null: positions
  bool first_link_has_weight();
  NodeId read_end(const IntegerRows* by_id);

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

}  // namespace cgcn
