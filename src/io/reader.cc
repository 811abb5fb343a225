#include "io/reader.h"

#include <algorithm>

#include "common/error.h"
#include "common/progress.h"
#include "io/import_steps.h"
#include "io/npz.h"

namespace cgcn {

void ImportOptions::list_options(OptionList& list) {
  list.begin_group("Reading");
  std::string names = "auto";
  for (const auto& reader : all_readers()) names += ", " + reader->name();
  list.add("format", &format, "the source's format: " + names).value("NAME").shape([names](const std::string& text) {
    if (text == "auto") return;
    std::vector<std::string> known;
    for (const auto& reader : all_readers()) known.push_back(reader->name());
    if (std::find(known.begin(), known.end(), text) != known.end()) return;
    throw std::invalid_argument(fmt::format("'{}' is not one of {}{}", text, names, did_you_mean(text, known)));
  });
  list.add("directed", &directed, "keep the direction of edges; otherwise each gets its reverse");
  list.add("keep-self-loops", &keep_self_loops, "keep edges from a node to itself; otherwise they are dropped");
  list.add("split", &split, "draw train/validation/test by these shares of the labelled nodes, such as 60/20/20")
      .value("A/B/C")
      .shape([](const std::string& text) {
        if (!text.empty()) parse_split_shares(text);
      });
  list.add("seed", &seed, "what --split is drawn with");
  list.add("features", &features, "the file of features, where it is not the usual one beside the source")
      .value("FILE");
  list.add("labels", &labels, "the file of labels, the same").value("FILE");
  list.add("split-file", &split_file, "the file of the split, the same").value("FILE");
  list.add_choice("header", &header, {{"auto", HeaderLine::kAuto}, {"yes", HeaderLine::kYes}, {"no", HeaderLine::kNo}},
                  "whether an edge list of text begins with a line of column names; auto: as it looks");
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
    if (options.format == "auto" ? reader->recognises(source) : reader->name() == options.format) return *reader;
  CGCN_CHECK(options.format == "auto", "format {} passed the option's check", options.format);
  if (!fs::exists(source, error)) throw Error("no such file or folder", source.string());
  open_npz_files(source);
  std::string known = "give one of these:";
  for (const auto& reader : all_readers())
    known += fmt::format("\n    {:<15} {}", reader->name(), reader->description());
  throw Error("is of no format that this program knows", source.string(), known);
}

}  // namespace cgcn
