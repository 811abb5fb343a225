// Mapped files that another program changes. One that is cut short, or that the disk cannot read, ends the process by a
// signal at the first touch: a program's handler can ask here which file it was (process/signals.h). One that keeps its
// size is noticed when a caller asks.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>

namespace cgcn {

// Where the mapped files are. A signal handler reads it, so that it is a table of fixed size; a mapping that finds no
// room in it is not watched.
void watch_mapping(const void* data, const struct stat& file, const std::filesystem::path& path);
void forget_mapping(const void* data);
// The watched file that this address is of, or null. A signal handler may call it.
const char* find_mapping(const void* address);

// Error that names a watched file which was written to since it was mapped. One that another file has taken the place
// of is as it was, and one whose folder was moved is not looked at. Call it before what was computed from mapped files
// is written down.
void check_mappings();

inline constexpr const char* kChangedFileHint =
    "begin again when nothing else writes there; a damaged store is noticed at the start";
// Whether a file has been written to between the two.
bool is_unchanged(const struct stat& before, const struct stat& now);

}  // namespace cgcn
