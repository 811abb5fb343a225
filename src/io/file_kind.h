// What a file is, by its first bytes: NumPy's formats, text, or a format that this program does not read.
#pragma once

#include <span>
#include <string>

#include "common/file.h"

namespace cgcn {

enum class FileKind { kText, kNpy, kZip };  // text: whatever is not known as something else, gzip included

// Error if the file has a binary format that is known but not read (Parquet, Feather …): its name and what to do.
FileKind kind_of_bytes(std::span<const std::byte> first, const std::string& where);
// The same of a file, of which only the first bytes are read.
FileKind kind_of_file(const fs::path& path);

// Whether the file is to be read as arrays: by its contents, or by its name if it is damaged or missing.
bool holds_arrays(const fs::path& path);

}  // namespace cgcn
