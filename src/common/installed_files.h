// Files that are installed with the program or library that this code is in.
#pragma once

#include <vector>

#include "common/file.h"

namespace cgcn {

// The library's own folder, if this code is in one, then the program's.
std::vector<fs::path> code_folders();

}  // namespace cgcn
