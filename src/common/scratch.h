// Memory over a file that has no name: for what need not stay resident, and goes away with the process.
#pragma once

#include <cstddef>
#include <memory>

#include "common/file.h"

namespace cgcn {

// In `folder`, which is on a disk with room. It goes away with the last reference. Error if there is no room: known
// now, not when it is written to.
std::shared_ptr<std::byte> make_scratch(const fs::path& folder, uint64_t size);
// Gives back its pages: they are read again from the file when they are needed.
void release_scratch(std::byte* scratch, uint64_t size);

}  // namespace cgcn
