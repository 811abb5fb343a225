// What import and download share: telling what was found.
#pragma once

#include "common/file.h"
#include "io/reader.h"

namespace cgcn {

void print_import(const fs::path& store, bool as_json, const Reader& reader, const ImportReport& report,
                  double seconds);

}  // namespace cgcn
