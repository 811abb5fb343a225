// Readers of outside formats: each recognises its files and streams them into a store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/options.h"
#include "graph/graph_builder.h"
#include "graph/store.h"

namespace cgcn {

enum class HeaderLine { kAuto, kYes, kNo };
enum class Categorical { kRefuse, kOneHot };
enum class Task { kClassification, kRegression };

struct ImportOptions {
  std::string format = "auto";
  bool directed = false;
  bool keep_self_loops = false;
  std::string split;  // "60/20/20": drawn with the seed; empty: the format's own
  uint64_t seed = 1;
  // Files whose names are not the usual ones next to the source; "none": not to be read.
  std::string features, labels, split_file;
  Task task = Task::kClassification;  // kRegression: labels are numbers
  bool multi_label = false;           // keep 0/1 labels as such if every row has exactly one 1

  // Tables of text.
  HeaderLine header = HeaderLine::kAuto;  // whether they begin with the names of their columns
  HeaderLine features_header = HeaderLine::kAuto, labels_header = HeaderLine::kAuto;  // kAuto: as header
  std::string id_column, label_column, drop_columns;                                  // as tables name them
  MissingValues missing = MissingValues::kRefuse;
  Categorical categorical = Categorical::kRefuse;
  std::string like;  // a store whose encoding of features and numbers of classes are taken over

  uint64_t memory = UINT64_MAX;  // for the whole process

  void list_options(OptionList& list);
  // Error if an option about tables of text is given; encoding_too: also those that say how features are encoded.
  void refuse_table_options(const std::string& format, bool encoding_too = true) const;
};

// What was read and fixed, as lines such as “302 duplicate entries merged”.
struct ImportReport {
  std::string name;  // what the source calls itself, such as "cora"; empty: the file's name is used
  std::vector<std::string> lines;
  BuildCounts counts;
  // “1 node has no edge”, “17 nodes have no edge”; nothing if the count is 0.
  void add_line(uint64_t count, const std::string& one, const std::string& many, const std::string& rest);
  void add_counts(const BuildCounts& counts, const BuildOptions& options);
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::string name() const = 0;         // for --format: "planetoid"
  virtual std::string description() const = 0;  // what it looks for, for the message when nothing fits
  virtual bool recognises(const fs::path& source) const = 0;
  virtual bool reads_tables() const { return false; }  // whether the options about tables of text mean something
  // Streams the source into the writer (all but finish()). Throws Error that names file and place.
  virtual void read(const fs::path& source, const ImportOptions& options, StoreWriter& store,
                    ImportReport& report) const = 0;
};

// Every format, the more particular ones first: the first that recognises a source reads it.
const std::vector<std::unique_ptr<Reader>>& all_readers();
// By options.format, or the one that recognises the source; Error listing what was looked for if none does.
const Reader& choose_reader(const fs::path& source, const ImportOptions& options);

std::unique_ptr<Reader> make_graphsage_reader();
std::unique_ptr<Reader> make_ogb_reader();
std::unique_ptr<Reader> make_edges_reader();
std::unique_ptr<Reader> make_planetoid_reader();
std::unique_ptr<Reader> make_gnn_benchmark_reader();
std::unique_ptr<Reader> make_dgl_reddit_reader();
std::unique_ptr<Reader> make_graphsaint_reader();
std::unique_ptr<Reader> make_plain_reader();

}  // namespace cgcn
