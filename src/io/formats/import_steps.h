// What every reader does with the parts it found: build and write the graph, features, labels, split. Each checks what
// it is given and names the place of what is wrong.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "io/numpy/array.h"
#include "io/numpy/array_labels.h"
#include "io/reader.h"
#include "io/text/class_table.h"

namespace cgcn {

// n as a NodeId; Error naming `where` if there are too many (or none).
NodeId check_node_count(uint64_t n, const std::string& where);

// Beyond this a damaged number is likelier than so many rows that are empty: nothing is allocated at its word.
inline uint64_t most_plausible_rows(uint64_t entries) { return 1'000'000 + 64 * entries; }
// For a number of nodes that only the largest id, or a declaration, speaks for: Error naming `where` beyond that.
void check_plausible(uint64_t n, uint64_t entries, const std::string& where, const std::string& hint);

// Builds (counting what is fixed), reports and writes the graph, with progress. Returns which nodes have an edge.
std::vector<bool> import_graph(NodeId num_nodes, EdgeSource& edges, const ImportOptions& options, StoreWriter& store,
                               ImportReport& report);

// Dense features, row after row, as float32 (or float16 if the source has no more than that).
class FeatureRows {
 public:
  // `where` names the source in the message about a value that is not finite.
  FeatureRows(StoreWriter& store, NodeId num_nodes, uint64_t columns, bool half, std::string where);
  void append(std::span<const float> values);  // whole rows, any number of them
  void finish();                               // checks that every node got a row

 private:
  StoreWriter& store_;
  ArrayWriter writer_;
  Buffer<Half> halves_;
  NodeId num_nodes_;
  uint32_t columns_;
  bool half_;
  uint64_t rows_ = 0;
  std::string where_;
};

// No features: the identity, so that each node is its own.
void import_identity_features(NodeId num_nodes, StoreWriter& store, ImportReport& report);
// A dense [N, F] (or [N]) array of numbers.
void import_features(const Array& features, NodeId num_nodes, StoreWriter& store);

std::array<double, 3> parse_split_shares(const std::string& text);  // throws std::invalid_argument
// Labels, their names and the split last, together, since --split draws from the labelled nodes. `split` is the
// source's own, or empty. 0/1 labels with exactly one 1 for every listed node are written as one class per node, unless
// --multi-label. What may have been meant otherwise is reported. Returns the roles that were written; empty if there
// are none.
std::vector<uint8_t> import_labels_and_split(ClassTable::Result classes, std::vector<uint8_t> split, NodeId num_nodes,
                                             const ImportOptions& options, StoreWriter& store, ImportReport& report);

// The file that an option names, or else the one that was found; nothing if the option is "none".
template <class Find>
fs::path named_or_found(const std::string& named, Find&& find) {
  return named == "none" ? fs::path() : named.empty() ? find() : fs::path(named);
}

// For formats whose files have fixed names: --features, --labels (and --split-file) are an Error.
void refuse_file_options(const ImportOptions& options, const std::string& format, bool split_too = true);

// The first of `names` that exists in `folder`; empty if none does.
fs::path find_file(const fs::path& folder, std::initializer_list<const char*> names);

}  // namespace cgcn
