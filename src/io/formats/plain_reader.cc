// “plain”: a folder of NumPy arrays, one thing a file, nodes numbered from 0. Each may be .npy or .npz.
//   edge_index [2, E] or [E, 2], or adj.npz (SciPy)   edge_weight [E], if edges have weights
//   features [N, F], dense or SciPy; none: each node is its own feature
//   labels [N] or [N, C]                              graph_id [N], if there are several graphs
//   split [N], or train, valid and test: ids or masks
#include <algorithm>

#include "common/error.h"
#include "common/progress.h"
#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/formats/text_files.h"
#include "io/numpy/array_edges.h"
#include "io/numpy/array_features.h"
#include "io/text/split_table.h"

namespace cgcn {
namespace {

struct PlainFiles : TextFiles {
  fs::path weights, graph_ids;
  std::vector<std::string> not_read;  // a line for each file that is left out

  void leave_out(const fs::path& file, const std::string& why) {
    not_read.push_back(fmt::format("{}: not read{}", file.filename().string(), why));
  }
  void leave_out_for(const fs::path& file, const fs::path& read) {
    leave_out(file, ", since there is " + read.filename().string());
  }
  // The first of `names` in the folder; the others are left out.
  fs::path find(const fs::path& folder, std::initializer_list<const char*> names) {
    const std::vector<fs::path> found = find_arrays(folder, names);
    for (size_t i = 1; i < found.size(); ++i) leave_out_for(found[i], found[0]);
    return found.empty() ? fs::path() : found[0];
  }
};

void find_role_lists(const fs::path& folder, PlainFiles& files) {
  files.role_lists = {
      files.find(folder, {"train", "train_idx", "train_mask"}),
      files.find(folder, {"valid", "validation", "val", "valid_idx", "val_idx", "valid_mask", "val_mask"}),
      files.find(folder, {"test", "test_idx", "test_mask"})};
  for (const fs::path& list : files.role_lists) {
    if (list.empty()) continue;
    if (!files.split.empty())
      files.leave_out_for(list, files.split);
    else if (files.role_lists[0].empty())
      files.leave_out(list, ", since there is no train_mask.npy");
  }
}

PlainFiles find_plain_files(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  PlainFiles files;
  files.is_folder = fs::is_directory(source, error);
  const fs::path folder = files.is_folder ? source : source.parent_path();
  files.edges = files.is_folder ? files.find(folder, {"edge_index", "adj", "adjacency"}) : source;
  if (files.edges.empty()) throw Error("has no edge_index.npy", source.string());
  files.weights = files.find(folder, {"edge_weight", "edge_weights"});
  for (const fs::path& attributes : find_arrays(folder, {"edge_attr"}))
    files.leave_out(attributes, files.weights.empty() ? " (edge_weight.npy would be read as weights)" : "");
  const auto find = [&](const std::string& named, std::initializer_list<const char*> names) {
    return named_or_found(named, [&] { return files.find(folder, names); });
  };
  files.features = find(options.features, {"features", "feats", "x"});
  files.labels = find(options.labels, {"labels", "label", "y"});
  files.split = find(options.split_file, {"split"});
  for (const fs::path& named : {files.features, files.labels})
    if (!named.empty() && !holds_arrays(named))
      throw Error(fmt::format("is text, but the edges are an array, {}", files.edges.filename().string()),
                  named.string(),
                  "give the edges as text too, one 'source,target' per line: its rows are then matched by id");
  files.graph_ids = files.find(folder, {"graph_id", "graph_ids"});
  if (options.split_file.empty()) find_role_lists(folder, files);  // else the user has said what the split is
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
  bool is_matrix() const { return matrix_.has_value(); }
  std::string describe(bool weighted) const {
    if (!matrix_) return index_->rows() == 2 ? "two rows of node ids" : "two columns of node ids";
    return std::string("a sparse matrix, entry (i, j) is an edge from i to j") +
           (weighted ? ", its values are weights" : "");
  }
  std::unique_ptr<EdgeSource> make(NodeId num_nodes) const {
    if (matrix_) return make_edges(*matrix_, num_nodes);
    return std::make_unique<ColumnEdges>(ColumnEdges::from_edge_index(*index_, weights_, num_nodes));
  }

 private:
  std::optional<SparseMatrix> matrix_;
  std::optional<Array> index_, weights_;
};

// Says what each file was taken for; those of the split are told when they are read.
void tell_plain_files(const PlainFiles& files, const PlainEdges& edges, bool weighted, const ImportOptions& options,
                      ImportReport& report) {
  files.tell(files.edges, "source", edges.describe(weighted), report);
  if (!files.weights.empty())
    files.tell(files.weights, "source",
               edges.is_matrix() ? "not read, since the values of the matrix are the weights"
               : weighted        ? "weights, entry i is of edge i"
                                 : "weights, all 1: not kept",
               report);
  if (!files.features.empty()) files.tell(files.features, options.features, "an array, row i is node i", report);
  if (!files.labels.empty()) files.tell(files.labels, options.labels, "an array, row i is node i", report);
  report.lines.insert(report.lines.end(), files.not_read.begin(), files.not_read.end());
}

void read_role_list(const PlainFiles& files, Role role, const fs::path& scratch, std::vector<uint8_t>& split,
                    ImportReport& report) {
  const fs::path& list = files.role_lists[static_cast<size_t>(role)];
  if (list.empty()) return;
  const Array nodes = open_array(list, scratch);
  const bool mask = is_mask(nodes, list, static_cast<NodeId>(split.size()));
  files.tell(list, "", mask ? "a mask, row i is node i" : "a list of node numbers", report);
  if (mask)
    assign_role_by_mask(nodes, role, split);
  else
    assign_role(nodes, role, split);
}

std::vector<uint8_t> read_plain_split(const PlainFiles& files, NodeId num_nodes, const ImportOptions& options,
                                      const fs::path& scratch, ImportReport& report) {
  if (!files.split.empty()) return read_split_file(files.split, options, num_nodes, files.edges, scratch, report);
  if (files.role_lists[0].empty()) return {};
  std::vector<uint8_t> split(num_nodes, static_cast<uint8_t>(Role::kNone));
  for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest})
    read_role_list(files, role, scratch, split, report);
  return split;
}

// Numbers the graphs that have nodes from 0, in the order of their ids: graphs are counted by the largest. Returns how
// many there are.
uint32_t renumber_graphs(std::vector<uint32_t>& graph_ids) {
  std::vector<uint32_t> numbers(*std::max_element(graph_ids.begin(), graph_ids.end()) + size_t{1}, 0);
  for (const uint32_t id : graph_ids) numbers[id] = 1;
  uint32_t count = 0;
  for (uint32_t& number : numbers)
    if (number == 1) number = count++;
  for (uint32_t& id : graph_ids) id = numbers[id];
  return count;
}

void import_graph_ids(const PlainFiles& files, NodeId num_nodes, StoreWriter& store, ImportReport& report) {
  const Array ids = open_array(files.graph_ids, store.staging());
  ids.require_integers("graph ids");
  ids.require_dimensions(1, "graph ids");
  if (ids.rows() != num_nodes)
    throw Error(fmt::format("holds graph ids of {} nodes, but the graph has {}", ids.rows(), num_nodes), ids.where());
  std::vector<uint32_t> graph_ids(num_nodes);
  for_each_row_block<int64_t>(ids, [&](uint64_t first, std::span<const int64_t> block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] < 0 || block[i] > static_cast<int64_t>(num_nodes))  // as many as nodes, if numbered from 1
        throw Error(fmt::format("row {} holds graph {}; graphs are numbered from 0", first + i, block[i]), ids.where());
      graph_ids[first + i] = static_cast<uint32_t>(block[i]);
    }
  });
  const uint32_t largest = *std::max_element(graph_ids.begin(), graph_ids.end());
  const uint32_t count = renumber_graphs(graph_ids);
  files.tell(files.graph_ids, "source",
             fmt::format("the graph of each node, {} {}{}", format_count(count), count == 1 ? "graph" : "graphs",
                         largest >= count ? " (renumbered from 0)" : ""),
             report);
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
    const std::unique_ptr<EdgeSource> checked_edges = edges.make(n);
    tell_plain_files(files, edges, checked_edges->weighted(), options, report);
    import_graph(n, *checked_edges, options, store, report);
    if (features)
      features->import_into(store, n);
    else
      import_identity_features(n, store, report);
    if (!files.graph_ids.empty()) import_graph_ids(files, n, store, report);
    import_labels_and_split(
        labels ? settle_array(read_labels(*labels, n, options.task), labels->where()) : ClassTable::Result(),
        read_plain_split(files, n, options, scratch, report), n, options, store, report);
  }
};

}  // namespace

std::unique_ptr<Reader> make_plain_reader() { return std::make_unique<PlainReader>(); }

}  // namespace cgcn
