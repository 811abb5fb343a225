// The files of an edge list: the list itself, and the tables and arrays next to it that are read with it.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "common/error.h"
#include "common/file.h"
#include "io/reader.h"
#include "io/text/edge_table.h"
#include "io/text/table_head.h"

namespace cgcn {

struct TextFiles {
  fs::path edges, features, labels, split;  // empty: none
  std::array<fs::path, 3> role_lists;       // train.txt, val.txt, test.txt
  bool is_folder = false;

  bool has_feature_table() const;  // as text; else there are none, or an array
  bool has_label_table() const;
  // Says what a file was taken for. named: how the user named it; empty: it was found.
  void tell(const fs::path& file, const std::string& named, const std::string& what, ImportReport& report) const;
  // An error about a file that nobody named, with how it came in; nothing: it is about another one.
  std::optional<Error> explain(const Error& error, const ImportOptions& options) const;
};

fs::path find_edges(const fs::path& folder);  // empty: it has no edge list
TextFiles find_text_files(const fs::path& source, const ImportOptions& options);

TableHead look_at_features(const TextFiles& files, const ImportOptions& options);
TableHead look_at_labels(const TextFiles& files, const ImportOptions& options);
// The edge list's columns. If every id is a text, the first line may be a header of unknown words: the tables next to
// it decide, else the user.
EdgeTableShape look_at_edges(const TextFiles& files, const ImportOptions& options, ImportReport& report);

}  // namespace cgcn
