// “plain”: a folder of NumPy arrays, one thing a file, nodes numbered from 0. Each may be .npy or .npz.
//   edge_index [2, E] or [E, 2], or adj.npz (SciPy)   edge_weight [E], if edges have weights
//   features [N, F], dense or SciPy; none: each node is its own feature
//   labels [N] or [N, C]                              graph_id [N], if there are several graphs
//   split [N], or train, valid and test: ids or masks
#include "common/error.h"
#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/numpy/array_edges.h"
#include "io/numpy/array_features.h"
#include "io/text/split_table.h"

namespace cgcn {
namespace {

struct PlainFiles {
  fs::path edges, weights, features, labels, split, graph_ids, role_lists[3];
};

PlainFiles find_plain_files(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  const bool is_folder = fs::is_directory(source, error);
  const fs::path folder = is_folder ? source : source.parent_path();
  PlainFiles files;
  files.edges = is_folder ? find_array(folder, {"edge_index", "adj", "adjacency"}) : source;
  if (files.edges.empty()) throw Error("has no edge_index.npy", source.string());
  files.weights = find_array(folder, {"edge_weight", "edge_weights"});
  const auto find = [&](const std::string& named, std::initializer_list<const char*> names) {
    return named_or_found(named, [&] { return find_array(folder, names); });
  };
  files.features = find(options.features, {"features", "feats", "x"});
  files.labels = find(options.labels, {"labels", "label", "y"});
  files.split = find(options.split_file, {"split"});
  for (const fs::path& named : {files.features, files.labels})
    if (!named.empty() && !holds_arrays(named))
      throw Error(fmt::format("is text, but the edges are an array, {}", files.edges.filename().string()),
                  named.string(),
                  "give the edges as text too, one 'source,target' per line: its rows are then matched by id");
  files.graph_ids = find_array(folder, {"graph_id", "graph_ids"});
  if (!files.split.empty() || options.split_file == "none") return files;
  files.role_lists[0] = find_array(folder, {"train", "train_idx", "train_mask"});
  files.role_lists[1] =
      find_array(folder, {"valid", "validation", "val", "valid_idx", "val_idx", "valid_mask", "val_mask"});
  files.role_lists[2] = find_array(folder, {"test", "test_idx", "test_mask"});
  return files;
}

// The edges, once it is known how many nodes there are; a SciPy matrix knows it by itself.
class PlainEdges {
 public:
  PlainEdges(const PlainFiles& files, const fs::path& scratch) {
    if (is_npz(files.edges))
      if (const NpzFile file(files.edges, scratch); SparseMatrix::is_in(file)) {
        matrix_ = SparseMatrix::read(file);
        return;
      }
    index_ = open_array(files.edges, scratch);
    if (files.weights.empty()) return;
    weights_ = open_array(files.weights, scratch);
    weights_->require_numbers("edge weights");
    if (all_ones(*weights_)) weights_.reset();
  }
  NodeId num_nodes() const {
    if (matrix_) return check_node_count(matrix_->rows, matrix_->where());
    const uint64_t n = ColumnEdges::from_edge_index(*index_, {}, 0).largest_id_plus_one();
    check_plausible(n, index_->size() / 2, index_->where(),
                    "number the nodes from 0 without gaps, or give the edges as text: its ids are names of any kind");
    return check_node_count(n, index_->where());
  }
  std::unique_ptr<EdgeSource> make(NodeId num_nodes) const {
    if (matrix_) return make_edges(*matrix_, num_nodes);
    return std::make_unique<ColumnEdges>(ColumnEdges::from_edge_index(*index_, weights_, num_nodes));
  }

 private:
  std::optional<SparseMatrix> matrix_;
  std::optional<Array> index_, weights_;
};

std::vector<uint8_t> read_plain_split(const PlainFiles& files, NodeId num_nodes, const ImportOptions& options,
                                      const fs::path& scratch, ImportReport& report) {
  if (!files.split.empty()) return read_split_file(files.split, options, num_nodes, files.edges, scratch, report);
  if (files.role_lists[0].empty()) return {};
  std::vector<uint8_t> split(num_nodes, static_cast<uint8_t>(Role::kNone));
  for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest})
    if (const fs::path& list = files.role_lists[static_cast<size_t>(role)]; !list.empty())
      assign_role(open_array(list, scratch), role, split);
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
    return "a folder with edge_index.npy or adj.npz, optionally features.npy, labels.npy, split.npy";
  }
  bool recognises(const fs::path& source) const override {
    std::error_code error;
    if (fs::is_directory(source, error)) return !find_array(source, {"edge_index", "adj", "adjacency"}).empty();
    return fs::is_regular_file(source, error) && holds_arrays(source);
  }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    const PlainFiles files = find_plain_files(source, options);
    const fs::path& scratch = store.staging();
    const PlainEdges edges(files, scratch);
    std::optional<ArrayFeatures> features;
    std::optional<Array> labels;
    if (!files.features.empty()) features.emplace(files.features, scratch);
    if (!files.labels.empty()) labels = open_array(files.labels, scratch);

    // Whatever lists all nodes says how many there are; edges alone cannot know of isolated ones at the end.
    const NodeId n = features ? features->rows()
                     : labels ? check_node_count(labels->rows(), labels->where())
                              : edges.num_nodes();
    import_graph(n, *edges.make(n), options, store, report);
    if (features)
      features->import_into(store, n);
    else
      import_identity_features(n, store, report);
    if (!files.graph_ids.empty()) import_graph_ids(open_array(files.graph_ids, scratch), n, store);
    import_labels_and_split(
        labels ? settle_array(read_labels(*labels, n, options.task), labels->where()) : ClassTable::Result(),
        read_plain_split(files, n, options, scratch, report), n, options, store, report);
  }
};

}  // namespace

std::unique_ptr<Reader> make_plain_reader() { return std::make_unique<PlainReader>(); }

}  // namespace cgcn
