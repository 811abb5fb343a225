// What import and download share: reading a source into a store and telling what was found.
#pragma once

#include <string>

#include "cli/command.h"
#include "common/memory_budget.h"
#include "io/reader.h"

namespace cgcn {

struct ImportCommand {
  CommonOptions common;
  ImportOptions import;
  MemoryOptions memory;
  std::string source, store, name;
  bool force = false;

  void list_options(OptionList& options);
  void run();
};

}  // namespace cgcn
