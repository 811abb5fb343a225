// “plain”: a folder of NumPy arrays, one thing a file, nodes numbered from 0.
//   edge_index.npy [2, E] or [E, 2]      edge_weight.npy [E], if edges have weights
//   features.npy [N, F]                  none: each node is its own feature
//   labels.npy [N] or [N, C]             graph_id.npy [N], where there are several graphs
//   split.npy [N], or train.npy, valid.npy and test.npy: ids or masks
#include "common/error.h"
#include "io/array_edges.h"
#include "io/import_steps.h"

namespace cgcn {
namespace {

struct PlainFiles {
  fs::path edges, weights, features, labels, split, graph_ids, parts[3];
};

fs::path named_or_found(const std::string& named, const fs::path& folder, std::initializer_list<const char*> names) {
  return named.empty() ? find_file(folder, names) : fs::path(named);
}

PlainFiles find_plain_files(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  const bool is_folder = fs::is_directory(source, error);
  const fs::path folder = is_folder ? source : source.parent_path();
  PlainFiles files;
  files.edges = is_folder ? folder / "edge_index.npy" : source;
  files.weights = find_file(folder, {"edge_weight.npy", "edge_weights.npy"});
  files.features = named_or_found(options.features, folder, {"features.npy", "feats.npy", "x.npy"});
  files.labels = named_or_found(options.labels, folder, {"labels.npy", "label.npy", "y.npy"});
  files.split = named_or_found(options.split_file, folder, {"split.npy"});
  files.graph_ids = find_file(folder, {"graph_id.npy", "graph_ids.npy"});
  if (!files.split.empty()) return files;
  files.parts[0] = find_file(folder, {"train.npy", "train_idx.npy", "train_mask.npy"});
  files.parts[1] =
      find_file(folder, {"valid.npy", "validation.npy", "val.npy", "valid_idx.npy", "val_idx.npy", "val_mask.npy"});
  files.parts[2] = find_file(folder, {"test.npy", "test_idx.npy", "test_mask.npy"});
  return files;
}

std::vector<uint8_t> read_plain_split(const PlainFiles& files, NodeId num_nodes) {
  if (!files.split.empty()) return read_split(Array::open_npy(files.split), num_nodes);
  if (files.parts[0].empty()) return {};
  std::vector<uint8_t> split(num_nodes, static_cast<uint8_t>(Role::kNone));
  for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest})
    if (const fs::path& part = files.parts[static_cast<size_t>(role)]; !part.empty())
      assign_role(Array::open_npy(part), role, split);
  return split;
}

void import_graph_ids(const Array& ids, NodeId num_nodes, StoreWriter& store) {
  ids.require_integers("graph ids");
  ids.require_dimensions(1, "graph ids");
  if (ids.rows() != num_nodes)
    throw Error(fmt::format("holds graph ids of {} nodes, but the graph has {}", ids.rows(), num_nodes), ids.where());
  std::vector<uint32_t> graph_ids(num_nodes);
  for_each_row_block<int64_t>(ids, [&](uint64_t first, std::span<const int64_t> block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] < 0 || block[i] >= static_cast<int64_t>(num_nodes))
        throw Error(fmt::format("row {} holds graph {}; graphs are numbered from 0", first + i, block[i]), ids.where());
      graph_ids[first + i] = static_cast<uint32_t>(block[i]);
    }
  });
  store.write_graph_ids(graph_ids);
}

class PlainReader final : public Reader {
 public:
  std::string name() const override { return "plain"; }
  std::string description() const override {
    return "a folder with edge_index.npy, and features.npy, labels.npy, split.npy where there are such";
  }
  bool recognises(const fs::path& source) const override {
    std::error_code error;
    if (fs::is_directory(source, error)) return fs::is_regular_file(source / "edge_index.npy", error);
    return source.extension() == ".npy" && fs::is_regular_file(source, error);
  }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    const PlainFiles files = find_plain_files(source, options);
    const Array edge_index = Array::open_npy(files.edges);
    const auto open_if = [](const fs::path& path) {
      return path.empty() ? std::nullopt : std::optional(Array::open_npy(path));
    };
    std::optional<Array> weights = open_if(files.weights);
    if (weights && all_ones(*weights)) weights.reset();
    const std::optional<Array> features = open_if(files.features), labels = open_if(files.labels);

    // Whatever lists all nodes says how many there are; edges alone cannot know of isolated ones at the end.
    const NodeId n = features ? check_node_count(features->rows(), features->where())
                     : labels ? check_node_count(labels->rows(), labels->where())
                              : check_node_count(ColumnEdges::from_edge_index(edge_index, {}, 0).largest_id_plus_one(),
                                                 edge_index.where());
    ColumnEdges edges = ColumnEdges::from_edge_index(edge_index, weights, n);
    import_graph(n, edges, options, store, report);
    if (features)
      import_features(*features, n, store);
    else
      import_identity_features(n, store, report);
    if (!files.graph_ids.empty()) import_graph_ids(Array::open_npy(files.graph_ids), n, store);
    import_labels_and_split(labels ? read_labels(*labels, n) : Labels(), read_plain_split(files, n), n, options, store,
                            report);
  }
};

}  // namespace

std::unique_ptr<Reader> make_plain_reader() { return std::make_unique<PlainReader>(); }

}  // namespace cgcn
