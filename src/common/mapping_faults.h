// A mapped file that another program cuts short, or that the disk cannot read, ends the process by a signal at the
// first touch. The handler makes of it what any other problem is: one message that names the file, and exit status 1.
#pragma once

#include <cstddef>
#include <filesystem>

namespace cgcn {

void install_mapping_fault_handler();  // SIGBUS; from elsewhere than a watched mapping it ends the process as before

// Where the mapped files are. A signal handler reads it, so that it is a table of fixed size; a mapping that finds no
// room in it is not watched.
void watch_mapping(const void* data, size_t bytes, const std::filesystem::path& path);
void forget_mapping(const void* data);

}  // namespace cgcn
