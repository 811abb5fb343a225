// Formats that are one or two .npz files.
//
// “gnn-benchmark” (Shchur et al., 2018): one file with adj_data, adj_indices, adj_indptr, adj_shape, the same of attr_,
// and labels (attr_matrix if the features are dense). It has no split of its own: split.npy next to it is used.
//
// “dgl-reddit”: reddit_data.npz (feature, label, node_types: 1 train, 2 validation, 3 test) and reddit_graph.npz
// (SciPy).
#include <algorithm>

#include "common/error.h"
#include "io/formats/import_steps.h"
#include "io/numpy/sparse_matrix.h"
#include "io/serialised/pickle.h"
#include "io/text/split_table.h"

namespace cgcn {
namespace {

bool is_benchmark_file(const fs::path& path) {
  try {
    const NpzFile file(path, {});
    return file.has("adj_indptr") && file.has("labels");
  } catch (const Error&) {
    return false;
  }
}

// The file itself, or the one such file of a folder.
fs::path find_benchmark_file(const fs::path& source) {
  std::error_code error;
  if (!fs::is_directory(source, error))
    return source.extension() == ".npz" && is_benchmark_file(source) ? source : fs::path();
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(source, error))
    if (entry.path().extension() == ".npz" && is_benchmark_file(entry.path())) found.push_back(entry.path());
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    throw Error(
        fmt::format("holds several graphs: {} and {}", found[0].filename().string(), found[1].filename().string()),
        source.string(), "give the path of one of them");
  }
  return found.empty() ? fs::path() : found.front();
}

// Texts, or (as in some of these files) a pickled array of str. What is neither is told, and left out.
std::vector<std::string> read_class_names(const NpzFile& file, ImportReport& report) {
  if (!file.has("class_names")) return {};
  try {
    const SharedBytes bytes = file.member("class_names");
    const std::string where = file.where() + ": class_names";
    const NpyHeader header = parse_npy_header(bytes.span, where);
    const size_t offset = header.data_offset;
    return header.kind == 'O' ? Pickle(bytes.slice(offset, bytes.span.size() - offset), where).texts()
                              : Array::parse_npy(bytes, where).read_texts();
  } catch (const Error& problem) {
    report.lines.push_back(fmt::format("class names not read: {}", problem.problem()));
    return {};
  }
}

class GnnBenchmarkReader final : public Reader {
 public:
  std::string name() const override { return "gnn-benchmark"; }
  std::string description() const override {
    return "an .npz file with adj_data, adj_indices, adj_indptr, attr_…, labels";
  }
  bool recognises(const fs::path& source) const override { return !find_benchmark_file(source).empty(); }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    refuse_file_options(options, name(), /*split_too=*/false);
    fs::path path = find_benchmark_file(source);
    if (path.empty()) path = source;  // say what is wrong with it
    report.name = path.stem().string();
    const NpzFile file(path, store.staging());
    const SparseMatrix adjacency = SparseMatrix::read_csr(file, "adj_");
    const NodeId n = check_node_count(adjacency.rows, adjacency.where());
    import_graph(n, *make_edges(adjacency, n), options, store, report);
    if (file.has("attr_indptr"))
      import_sparse_features(SparseMatrix::read_csr(file, "attr_"), n, store);
    else if (file.has("attr_matrix"))
      import_features(file.array("attr_matrix"), n, store);
    else
      import_identity_features(n, store, report);
    ClassTable::Result classes{read_labels(file.array("labels"), n, options.task), read_class_names(file, report)};
    if (classes.names.empty()) ClassTable::name_numbers(classes);
    const fs::path split =
        named_or_found(options.split_file, [&] { return find_array(path.parent_path(), {"split"}); });
    std::vector<uint8_t> roles;
    if (!split.empty()) roles = read_split_file(split, options, n, path, store.staging(), report);
    import_labels_and_split(std::move(classes), std::move(roles), n, options, store, report);
  }
};

class DglRedditReader final : public Reader {
 public:
  std::string name() const override { return "dgl-reddit"; }
  std::string description() const override { return "a folder with reddit_data.npz and reddit_graph.npz"; }
  bool recognises(const fs::path& source) const override {
    return !find_file(source, {"reddit_data.npz"}).empty() || !find_file(source, {"reddit_graph.npz"}).empty();
  }

  void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
            ImportReport& report) const override {
    refuse_file_options(options, name());
    report.name = "reddit";
    const NpzFile file(source / "reddit_data.npz", store.staging());
    const Array labels = file.array("label");
    const NodeId n = check_node_count(labels.rows(), labels.where());
    const SparseMatrix adjacency = SparseMatrix::read(NpzFile(source / "reddit_graph.npz", store.staging()));
    import_graph(n, *make_edges(adjacency, n), options, store, report);
    import_features(file.array("feature"), n, store);
    import_labels_and_split(settle_array(read_labels(labels, n), labels.where()),
                            read_node_types(file.array("node_types"), n), n, options, store, report);
  }

 private:
  static std::vector<uint8_t> read_node_types(const Array& types, NodeId n) {
    types.require_integers("node types");
    types.require_dimensions(1, "node types");
    if (types.rows() != n)
      throw Error(fmt::format("holds types of {} nodes, but there are {}", types.rows(), n), types.where());
    std::vector<uint8_t> split(n, static_cast<uint8_t>(Role::kNone));
    for_each_row_block<int64_t>(types, [&](uint64_t first, std::span<const int64_t> block) {
      for (size_t i = 0; i < block.size(); ++i) {
        if (block[i] < 0 || block[i] > 3)
          throw Error(fmt::format("row {} holds {}; 1 is train, 2 validation, 3 test, 0 none", first + i, block[i]),
                      types.where());
        if (block[i] > 0) split[first + i] = static_cast<uint8_t>(block[i] - 1);
      }
    });
    return split;
  }
};

}  // namespace

std::unique_ptr<Reader> make_gnn_benchmark_reader() { return std::make_unique<GnnBenchmarkReader>(); }
std::unique_ptr<Reader> make_dgl_reddit_reader() { return std::make_unique<DglRedditReader>(); }

}  // namespace cgcn
