// A graph in a format of another program, read into a store.
#pragma once

#include "common/memory_budget.h"
#include "io/reader.h"

namespace cgcn {

struct ImportRequest {
  ImportOptions import;
  MemoryOptions memory;
  std::string name;    // what the graph is called; empty: as the source calls itself
  bool force = false;  // replace the store if it exists

  void list_options(OptionList& list);
};

struct ImportResult {
  const Reader& reader;
  ImportReport report;
};
ImportResult import_store(const std::string& source, const std::string& store, ImportRequest request);

}  // namespace cgcn
