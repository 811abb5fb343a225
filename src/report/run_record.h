// What the report shows of a run, read from its folder: the data that the page draws, as JSON.
//
// Works for a run that is in progress or was stopped; says which. Nothing here opens the graph: all figures are those
// that the run wrote down.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "common/file.h"

namespace cgcn {

// Error if it is no run, or if a file of it is damaged (names file and line).
nlohmann::json read_run(const fs::path& run);

// All of them, with names that differ, and when it was read.
nlohmann::json read_runs(const std::vector<fs::path>& runs);

}  // namespace cgcn
