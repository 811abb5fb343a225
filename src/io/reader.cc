#include "io/reader.h"

#include <algorithm>

#include "common/error.h"
#include "common/input_file.h"
#include "common/progress.h"
#include "io/formats/import_steps.h"
#include "io/numpy/npz.h"

namespace cgcn {

void ImportOptions::list_options(OptionList& list) {
  list.begin_group("Input");
  std::string names = "auto";
  for (const auto& reader : all_readers()) names += ", " + reader->name();
  list.add("format", &format, "the source's format: " + names).value("NAME").shape([names](const std::string& text) {
    if (text == "auto") return;
    std::vector<std::string> known;
    for (const auto& reader : all_readers()) known.push_back(reader->name());
    if (std::find(known.begin(), known.end(), text) != known.end()) return;
    throw std::invalid_argument(fmt::format("'{}' is not one of {}{}", text, names, did_you_mean(text, known)));
  });
  list.add("directed", &directed, "keep edge directions: a node sees the targets of its edges (default: undirected)");
  list.add("keep-self-loops", &keep_self_loops, "keep self-loops (default: dropped)");
  list.add("split", &split, "random train/validation/test split of the labelled nodes, such as 60/20/20")
      .value("A/B/C")
      .shape([](const std::string& text) {
        if (!text.empty()) parse_split_shares(text);
      });
  list.add("seed", &seed, "random seed of --split");
  list.add("features", &features, "features file; default: the usual names next to the source; none: no features")
      .value("FILE");
  list.add("labels", &labels, "labels file; default: the usual names next to the source; none: no labels")
      .value("FILE");
  list.add("split-file", &split_file, "train/validation/test split: CSV, text or .npy; none: no split").value("FILE");
  list.add("multi-label", &multi_label,
           "keep labels of 0 and 1 as multi-label, and read a column of classes as lists (a;b); default: one class per "
           "node if every row has exactly one 1");
  list.add_choice("task", &task, {{"classification", Task::kClassification}, {"regression", Task::kRegression}},
                  "what labels are: classes, or numbers to predict (one per node, NaN or empty: unknown)");
  list.begin_group("Text files");
  const auto add_header = [&](const char* name, HeaderLine* target, const char* help) {
    list.add_choice(name, target, {{"auto", HeaderLine::kAuto}, {"yes", HeaderLine::kYes}, {"no", HeaderLine::kNo}},
                    help);
  };
  add_header("header", &header, "whether text files have a header line; auto: detect");
  add_header("features-header", &features_header, "header line of the features file; auto: as --header");
  add_header("labels-header", &labels_header, "header line of the labels file; auto: as --header");
  list.add("id-column", &id_column,
           "column that names the nodes in features, labels and split (comma-separated if they differ); "
           "none: row i is node i")
      .value("NAME");
  list.add("label-column", &label_column, "column of the labels file that holds the class").value("NAME");
  list.add("drop-columns", &drop_columns, "feature columns to ignore, comma-separated").value("NAMES");
  list.add_choice(
      "missing", &missing,
      {{"refuse", MissingValues::kRefuse},
       {"mean", MissingValues::kMean},
       {"zero", MissingValues::kZero},
       {"indicator", MissingValues::kIndicator}},
      "missing values (empty, NA, NaN) in features: refuse; fill with the mean over training nodes, or with "
      "zero; indicator: mean, and a 0/1 column that marks them");
  list.add_choice("categorical", &categorical, {{"refuse", Categorical::kRefuse}, {"one-hot", Categorical::kOneHot}},
                  "columns of text in features: refuse, or a 0/1 column for each value that training nodes have");
  list.add("like", &like,
           "encode features and number classes as this store does: for graphs that its models are used on")
      .value("STORE");
}

void ImportOptions::refuse_table_options(const std::string& format, bool encoding_too) const {
  const auto refuse = [&](bool given, const char* option) {
    if (given)
      throw Error(fmt::format("is for tables of text that are given by name; the {} format has none", format), option,
                  "leave it out");
  };
  const bool text_split = !split_file.empty() && split_file != "none";
  refuse(header != HeaderLine::kAuto && !text_split, "--header");
  refuse(features_header != HeaderLine::kAuto, "--features-header");
  refuse(labels_header != HeaderLine::kAuto, "--labels-header");
  refuse(!id_column.empty() && !text_split, "--id-column");
  refuse(!label_column.empty(), "--label-column");
  refuse(!like.empty(), "--like");
  if (!encoding_too) return;
  refuse(!drop_columns.empty(), "--drop-columns");
  refuse(missing != MissingValues::kRefuse, "--missing");
  refuse(categorical != Categorical::kRefuse, "--categorical");
}

void ImportReport::add_line(uint64_t count, const std::string& one, const std::string& many, const std::string& rest) {
  if (count > 0) lines.push_back(fmt::format("{} {} {}", format_count(count), count == 1 ? one : many, rest));
}

void ImportReport::add_counts(const BuildCounts& found, const BuildOptions& options) {
  counts = found;
  add_line(found.entries, "edge entry", "edge entries", "read");
  add_line(found.duplicates, "duplicate entry", "duplicate entries", "merged");
  add_line(found.self_loops, "self-loop entry", "self-loop entries",
           options.keep_self_loops ? "kept" : "dropped (--keep-self-loops keeps them)");
  add_line(found.one_directional, "reverse entry", "reverse entries", "added (--directed keeps directions)");
  if (options.directed)
    lines.emplace_back(
        "edges keep their direction: a node sees the targets of its edges, not the nodes that point to it");
}

const std::vector<std::unique_ptr<Reader>>& all_readers() {
  static const auto readers = [] {
    std::vector<std::unique_ptr<Reader>> list;
    for (const auto make :
         {make_planetoid_reader, make_gnn_benchmark_reader, make_dgl_reddit_reader, make_graphsaint_reader,
          make_graphsage_reader, make_ogb_reader, make_plain_reader, make_edges_reader})
      list.push_back(make());
    return list;
  }();
  return readers;
}

namespace {

// A damaged .npz is recognised by no reader: what is wrong with it helps more than that nothing fits.
void open_npz_files(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".npz" && entry.is_regular_file(error)) NpzFile(entry.path(), {});
}

}  // namespace

const Reader& choose_reader(const fs::path& source, const ImportOptions& options) {
  std::error_code error;
  for (const auto& reader : all_readers())
    if (options.format == "auto" ? reader->recognises(source) : reader->name() == options.format) {
      if (!reader->reads_tables()) options.refuse_table_options(reader->name());
      return *reader;
    }
  CGCN_CHECK(options.format == "auto", "format {} passed the option's check", options.format);
  if (!fs::exists(source, error)) throw Error("no such file or folder", source.string());
  if (fs::is_other(fs::status(source, error))) refuse_special_file(source);
  open_npz_files(source);
  std::string known = "give one of these:";
  for (const auto& reader : all_readers())
    known += fmt::format("\n    {:<15} {}", reader->name(), reader->description());
  throw Error("is of no format that this program knows", source.string(), known);
}

}  // namespace cgcn
