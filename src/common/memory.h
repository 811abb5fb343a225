// What memory the process takes and what the machine has, as the kernel tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/file.h"

namespace cgcn {

struct MemoryFigures {
  uint64_t peak_rss = 0;     // the most that was ever resident
  uint64_t rss = 0;          // resident now, of which:
  uint64_t anonymous = 0;    //   heap and stacks
  uint64_t file_backed = 0;  // mapped files (page cache that the kernel may take back) and shared memory
};

MemoryFigures memory_figures();
void reset_peak_rss();  // so that a stage can be measured on its own; does nothing if the kernel forbids it

// Asks for large pages behind these bytes, before they are first touched; a wish that the kernel may ignore.
void prefer_huge_pages(void* begin, size_t bytes);

// Of the machine, or the control group's limit if that is lower. root: where /proc and /sys are.
uint64_t total_memory(const fs::path& root = "/");
// What can be taken without swapping, under the same limit.
uint64_t available_memory(const fs::path& root = "/");

// "2G", "2200M", "1.5GiB", "4096" → bytes. M and MiB are both 2^20. Throws Error naming `where`.
uint64_t parse_bytes(std::string_view text, const std::string& where);
std::string format_bytes(uint64_t bytes);  // "1.4 GiB"

}  // namespace cgcn
