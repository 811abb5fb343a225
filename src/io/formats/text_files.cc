#include "io/formats/text_files.h"

#include <algorithm>
#include <initializer_list>

#include "io/file_kind.h"
#include "io/formats/import_steps.h"
#include "io/numpy/npz.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

// base.csv, base.tsv, base.txt, each perhaps with .gz behind it; or the other endings given.
fs::path find_text(const fs::path& folder, std::initializer_list<const char*> bases,
                   std::initializer_list<const char*> endings = {".csv", ".tsv", ".txt"}) {
  for (const char* base : bases)
    for (const char* ending : endings)
      if (fs::path found = find_plain_or_gzip(folder / (std::string(base) + ending)); !found.empty()) return found;
  return {};
}

// Whether one column of the table has both ids.
bool lists_both(const TableHead& head, const std::pair<std::string, std::string>& ids) {
  std::vector<int> found(head.width, 0);
  LineReader lines(head.path);
  for_each_row(lines, head, [&](const std::vector<std::string_view>& fields) {
    for (size_t c = 0; c < head.width; ++c)
      found[c] |= (fields[c] == ids.first ? 1 : 0) | (fields[c] == ids.second ? 2 : 0);
  });
  return std::find(found.begin(), found.end(), 3) != found.end();
}

}  // namespace

fs::path find_edges(const fs::path& folder) {
  return find_text(folder, {"edges", "edge", "edge_list", "edgelist", "graph", "links"},
                   {".csv", ".tsv", ".txt", ".edges", ".edgelist"});
}

TextFiles find_text_files(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  TextFiles files;
  files.is_folder = fs::is_directory(source, error);
  const fs::path folder = files.is_folder ? source : source.parent_path();
  files.edges = files.is_folder ? find_edges(folder) : source;
  if (files.edges.empty()) throw Error("holds no edges.csv, edges.tsv or edges.txt", folder.string());
  const auto find = [&](const std::string& named, std::initializer_list<const char*> bases) {
    return named_or_found(named, [&] {
      fs::path found = find_array(folder, bases);
      return found.empty() ? find_text(folder, bases) : found;
    });
  };
  files.features = find(options.features, {"features", "feats", "x"});
  files.labels = find(options.labels, {"labels", "label", "y"});
  files.split = find(options.split_file, {"split"});
  if (!files.split.empty() || options.split_file == "none") return files;
  const auto find_list = [&](std::initializer_list<const char*> bases, std::initializer_list<const char*> masks) {
    fs::path found = find_text(folder, bases);
    if (found.empty()) found = find_array(folder, bases);
    return found.empty() ? find_array(folder, masks) : found;
  };
  files.role_lists = {
      find_list({"train", "train_idx"}, {"train_mask"}),
      find_list({"val", "valid", "validation", "dev", "val_idx", "valid_idx"}, {"val_mask", "valid_mask"}),
      find_list({"test", "test_idx"}, {"test_mask"})};
  return files;
}

bool TextFiles::has_feature_table() const { return !features.empty() && !holds_arrays(features); }
bool TextFiles::has_label_table() const { return !labels.empty() && !holds_arrays(labels); }

void TextFiles::tell(const fs::path& file, const std::string& named, const std::string& what,
                     ImportReport& report) const {
  const char* option = file == features ? "--features" : file == labels ? "--labels" : "--split-file";
  std::string found;
  if (named.empty() && !is_folder)
    found = fmt::format(" (found next to {}; {} none ignores it)", edges.filename().string(), option);
  report.lines.push_back(fmt::format("{}{}: {}", file.filename().string(), found, what));
}

std::optional<Error> TextFiles::explain(const Error& error, const ImportOptions& options) const {
  if (is_folder) return std::nullopt;
  const std::pair<const fs::path*, const char*> found[] = {
      {options.features.empty() ? &features : nullptr, "--features"},
      {options.labels.empty() ? &labels : nullptr, "--labels"},
      {options.split_file.empty() ? &split : nullptr, "--split-file"}};
  for (const auto& [file, option] : found) {
    if (file == nullptr || file->empty()) continue;
    const std::string name = file->filename().string();
    if ((error.problem() + error.where()).find(name) == std::string::npos) continue;
    return Error(error.problem(), error.where(),
                 fmt::format("{}{} was found next to {}: {} none ignores it",
                             error.hint().empty() ? "" : error.hint() + "; ", name, edges.filename().string(), option));
  }
  return std::nullopt;
}

TableHead look_at_features(const TextFiles& files, const ImportOptions& options) {
  const HeaderLine own = options.features_header;
  return look_at_table(files.features, own == HeaderLine::kAuto ? options.header : own, TableKind::kFeatures);
}

TableHead look_at_labels(const TextFiles& files, const ImportOptions& options) {
  const HeaderLine own = options.labels_header;
  return look_at_table(files.labels, own == HeaderLine::kAuto ? options.header : own, TableKind::kClasses);
}

EdgeTableShape look_at_edges(const TextFiles& files, const ImportOptions& options, ImportReport& report) {
  const EdgeTableShape shape = look_at_edges(files.edges, options.header);
  const std::string line = show(shape.doubtful);
  if (shape.doubtful.empty()) return shape;
  if (shape.header) {
    report.lines.push_back(fmt::format("first line read as a header: {} (--header no: as an edge)", line));
    return shape;
  }
  const FirstEdge first = look_at_first_edge(files.edges, shape);
  if (first == FirstEdge::kLikeOthers) return shape;
  std::vector<TableHead> heads;
  if (files.has_feature_table()) heads.push_back(look_at_features(files, options));
  if (files.has_label_table()) heads.push_back(look_at_labels(files, options));
  for (const TableHead& head : heads)
    for (const std::string& word : {shape.first_ids.first, shape.first_ids.second})
      if (head.find(word) != TableHead::kNone) {
        report.lines.push_back(
            fmt::format("first line read as a header: {}: {} is a column of {} (--header no: as an edge)", line,
                        show(word), head.path.filename().string()));
        return look_at_edges(files.edges, HeaderLine::kYes);
      }
  for (const TableHead& head : heads)
    if (lists_both(head, shape.first_ids)) return shape;
  if (first == FirstEdge::kOnlyOneAlone) {
    std::string others;  // --header is about them, too
    for (const TableHead& head : heads)
      if (head.header) others += head.kind == TableKind::kFeatures ? " --features-header yes" : " --labels-header yes";
    throw Error(
        fmt::format("the first line, {}, may name the columns or be an edge: its words occur nowhere else", line),
        files.edges.string(),
        fmt::format("--header yes if it names the columns, --header no{} if it is an edge", others));
  }
  report.lines.push_back(fmt::format("first line read as an edge: {} (--header yes: as a header)", line));
  return shape;
}

}  // namespace cgcn
