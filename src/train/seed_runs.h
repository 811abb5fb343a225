// The runs of several seeds (train --seeds N), each in a folder of its own: FOLDER/seed-1, FOLDER/seed-2 …
#pragma once

#include <cstdint>
#include <vector>

#include "common/file.h"

namespace cgcn {

fs::path seed_folder(const fs::path& folder, uint64_t seed);
// The seeds whose runs are there, rising.
std::vector<uint64_t> seeds_in(const fs::path& folder);

// A folder of seeds stands for the run that did best on the validation nodes, by its --select-by; the first of equals.
// That is said. Any other path is returned as it is. Error if no seed has finished.
fs::path best_of_seeds(const fs::path& path);

}  // namespace cgcn
