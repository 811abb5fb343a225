// “graphsaint”: the files of GraphSAINT's data sets.
//   adj_full.npz    the whole graph, a SciPy matrix    feats.npy       features; none: each node is its own feature
//   class_map.json  node → a class, or a list of 0/1   role.json       lists of nodes: tr, va, te
// adj_train.npz, the part of adj_full between training nodes, follows from the split and is not read.
#include "common/error.h"
#include "io/formats/import_steps.h"
#include "io/numpy/sparse_matrix.h"
#include "io/serialised/json_reader.h"
#include "io/text/class_table.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

std::vector<uint8_t> read_roles(const fs::path& path, NodeId num_nodes) {
  std::vector<uint8_t> split(num_nodes, static_cast<uint8_t>(Role::kNone));
  JsonReader json(path);
  json.enter_object();
  for (std::string_view key; json.next_key(key);) {
    const Role role = key == "tr"   ? Role::kTrain
                      : key == "va" ? Role::kValidation
                      : key == "te" ? Role::kTest
                                    : Role::kNone;
    if (role == Role::kNone) json.fail(fmt::format("{} is none of tr, va and te", show(key)));
    json.enter_array();
    while (json.next_element()) {
      const std::string_view word = json.read_word();
      const std::optional<int64_t> node = parse_integer(word);
      if (!node) json.fail(fmt::format("{} is no node", show(word)));
      assign_role(*node, role, json.where(), split);
    }
  }
  json.finish();
  return split;
}

class GraphSaintReader final : public Reader {
 public:
  std::string name() const override { return "graphsaint"; }
  std::string description() const override {
    return "a folder with adj_full.npz, feats.npy, class_map.json and role.json";
  }
  bool recognises(const fs::path& source) const override { return !find_file(source, {"adj_full.npz"}).empty(); }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    refuse_file_options(options, name());
    const SparseMatrix adjacency = SparseMatrix::read(NpzFile(source / "adj_full.npz", store.staging()));
    const NodeId n = check_node_count(adjacency.rows, adjacency.where());
    import_graph(n, *make_edges(adjacency, n), options, store, report);
    if (const fs::path features = find_file(source, {"feats.npy"}); !features.empty())
      import_features(Array::open_npy(features), n, store);
    else
      import_identity_features(n, store, report);
    ClassTable::Result classes = read_class_map(source / "class_map.json", n, [&](std::string_view key) {
      const std::optional<int64_t> node = parse_integer(key);
      return node && *node >= 0 && *node < static_cast<int64_t>(n) ? static_cast<NodeId>(*node) : kNoNode;
    });
    import_labels_and_split(std::move(classes), read_roles(source / "role.json", n), n, options, store, report);
  }
};

}  // namespace

std::unique_ptr<Reader> make_graphsaint_reader() { return std::make_unique<GraphSaintReader>(); }

}  // namespace cgcn
