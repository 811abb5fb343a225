// What import and download share: reading a source into a store and telling what was found.
#pragma once

#include <string>

#include "cli/command.h"
#include "engine/import.h"

namespace cgcn {

struct ImportCommand {
  CommonOptions common;
  ImportRequest request;
  std::string source, store;

  void list_options(OptionList& options);
  void run();
};

}  // namespace cgcn
